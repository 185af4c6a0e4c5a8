-- Statistics count the bodies that came under more than one id; that must not read all of them.
CREATE INDEX ichido_signed_digest_repeated ON ichido_signed_digest (last_at) WHERE repeats > 0;
