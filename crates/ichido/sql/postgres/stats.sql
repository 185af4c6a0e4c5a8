-- Figures by name; reads what is open, never the history.
SELECT s.name, s.value FROM ichido.stats() s
