CREATE TABLE IF NOT EXISTS `forms`.`feedback` (
  `id` Int64 COMMENT '(result_id)',
  `select` Nullable(String) COMMENT 'It\'s "quoted" `so`; DROP TABLE x; -- \\\' and lines (item:1)',
  `order` Nullable(Int64) COMMENT '*/ $$ /* {x} %s right to left (item:2)',
  `group` Nullable(Decimal(38, 10)) COMMENT 'Цвет 你 (item:3)',
  `narrow` Nullable(Decimal(12, 2)) COMMENT '(item:4)',
  `float` Nullable(Float64) COMMENT 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long l (item:5)',
  `bool` Nullable(Bool) COMMENT 'Yes? (item:6)',
  `date` Nullable(Date32) COMMENT '(item:7)',
  `finished at` DateTime64(6, 'UTC') COMMENT 'Date finish (meta:date_finish)',
  `list` Array(Nullable(String)) COMMENT '(item:8)',
  `numbers` Array(Nullable(Decimal(7, 2))) COMMENT '(item:9)',
  `instants` Array(Nullable(DateTime64(6, 'UTC'))) COMMENT '(item:10)',
  `Größe` Nullable(String) COMMENT '(item:11)',
  `a'b"c\`d\\e; --\nf` Nullable(String) COMMENT '(item:12)'
) ENGINE = MergeTree ORDER BY `id` COMMENT 'It\'s a form; -- \\ */';

-- PARQUET IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM s3(
  'https://bucket.s3.amazonaws.com/lake/form1/{dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet,dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet}',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
SELECT throwIf(count() <> 9, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- PARQUET IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM s3(
  'https://bucket.s3.amazonaws.com/lake/form1/dt=*/part-*.parquet',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
SELECT throwIf(count() = 0, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- PARQUET HERE
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- file() reads where the server runs, below its user_files_path; clickhouse-local reads any path.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM file(
  '/srv/lake/{dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet,dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet}',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
SELECT throwIf(count() <> 9, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- PARQUET HERE, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: /srv/lake/_SUCCESS has the same bytes before and after.
-- file() reads where the server runs, below its user_files_path; clickhouse-local reads any path.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM file(
  '/srv/lake/dt=*/part-*.parquet',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
SELECT throwIf(count() = 0, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- NDJSON IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM s3(
  'https://s3.example.com/bucket/lines/form%201/{dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson,dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson}',
  'JSONEachRow',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0, date_time_input_format = 'best_effort';
SELECT throwIf(count() <> 9, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- NDJSON IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lines/form 1/_SUCCESS has the same bytes before and after.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM s3(
  'https://s3.example.com/bucket/lines/form%201/dt=*/part-*.ndjson',
  'JSONEachRow',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0, date_time_input_format = 'best_effort';
SELECT throwIf(count() = 0, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- CSV HERE
-- /srv/it's/f.csv.gz (csv) is not loaded: clickhouse statements here read parquet or ndjson; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO PARTS
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
SELECT throwIf(count() <> 0, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- NO PARTS, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`
FROM s3(
  'https://bucket.s3.amazonaws.com/lake/form1/dt=*/part-*.parquet',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;

-- NO RUN YET
-- No run has written s3://bucket/lake/form1/ yet.
-- clickhouse-client stops at an error, which this relies on: leave --ignore-error out.
-- An array of ClickHouse is never null: a null list is loaded as an empty one.
CREATE OR REPLACE TABLE `forms`.`feedback__load` AS `forms`.`feedback`;
INSERT INTO `forms`.`feedback__load` (
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`,
  `a'b"c\`d\\e; --\nf`
)
SELECT
  `id`,
  `select`,
  `order`,
  `group`,
  `narrow`,
  `float`,
  `bool`,
  `date`,
  `finished at`,
  `list`,
  `numbers`,
  `instants`,
  `Größe`,
  `a'b"c\`d\\e; --\nf`
FROM s3(
  'https://bucket.s3.amazonaws.com/lake/form1/dt=*/part-*.parquet',
  'Parquet',
  '`id` Int64, `select` Nullable(String), `order` Nullable(Int64), `group` Nullable(Decimal(38, 10)), `narrow` Nullable(Decimal(12, 2)), `float` Nullable(Float64), `bool` Nullable(Bool), `date` Nullable(Date32), `finished at` Nullable(DateTime64(6, \'UTC\')), `list` Array(Nullable(String)), `numbers` Array(Nullable(Decimal(7, 2))), `instants` Array(Nullable(DateTime64(6, \'UTC\'))), `Größe` Nullable(String), `a\'b"c\\`d\\\\e; --\\nf` Nullable(String)'
)
SETTINGS insert_null_as_default = 0;
SELECT throwIf(count() = 0, 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew') FROM `forms`.`feedback__load`;
EXCHANGE TABLES `forms`.`feedback__load` AND `forms`.`feedback`;
DROP TABLE `forms`.`feedback__load`;
