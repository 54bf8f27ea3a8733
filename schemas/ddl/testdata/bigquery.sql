CREATE TABLE IF NOT EXISTS `forms`.`feedback` (
  `id` INT64 NOT NULL OPTIONS (description = '(result_id)'),
  `select` STRING OPTIONS (description = 'It\'s "quoted" `so`; DROP TABLE x; -- \\\' and lines (item:1)'),
  `order` INT64 OPTIONS (description = '*/ $$ /* {x} %s right to left (item:2)'),
  `group` BIGNUMERIC(38, 10) OPTIONS (description = 'Цвет 你 (item:3)'),
  `narrow` NUMERIC(12, 2) OPTIONS (description = '(item:4)'),
  `float` FLOAT64 OPTIONS (description = 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long l (item:5)'),
  `bool` BOOL OPTIONS (description = 'Yes? (item:6)'),
  `date` DATE OPTIONS (description = '(item:7)'),
  `finished at` TIMESTAMP NOT NULL OPTIONS (description = 'Date finish (meta:date_finish)'),
  `list` ARRAY<STRING> OPTIONS (description = '(item:8)'),
  `numbers` ARRAY<NUMERIC(7, 2)> OPTIONS (description = '(item:9)'),
  `instants` ARRAY<TIMESTAMP> OPTIONS (description = '(item:10)'),
  `Größe` STRING OPTIONS (description = '(item:11)')
)
OPTIONS (description = 'It\'s a form; -- \\ */');
