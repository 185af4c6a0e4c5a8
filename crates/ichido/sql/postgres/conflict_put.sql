-- Records a conflict: same event key, both signed, other content. The first one wins.
SELECT ichido.conflict_put($1, $2, $3, $4, $5, $6, $7)
