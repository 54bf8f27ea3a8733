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

-- PARQUET IN S3
-- BigQuery reads Cloud Storage only: copy s3://bucket/lake/form1/ to gs://bucket/lake/form1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = TRUE,
  column_name_character_map = 'V2',
  uris = [
    'gs://bucket/lake/form1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet',
    'gs://bucket/lake/form1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet'
  ]
);
ASSERT NOT ((SELECT COUNT(*) FROM `forms`.`feedback__load`) <> 9) AS 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew';
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;

-- PARQUET IN S3, BY A PATTERN
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- BigQuery reads Cloud Storage only: copy s3://bucket/lake/form1/ to gs://bucket/lake/form1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = TRUE,
  column_name_character_map = 'V2',
  uris = [
    'gs://bucket/lake/form1/dt=*.parquet'
  ]
);
ASSERT NOT ((SELECT COUNT(*) FROM `forms`.`feedback__load`) = 0) AS 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew';
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;

-- PARQUET HERE
-- /srv/lake/ (parquet) is not loaded: BigQuery reads gs:// only; copy it to Cloud Storage and give --location gs://…
-- There is nothing to load the table forms.feedback from.

-- PARQUET HERE, BY A PATTERN
-- /srv/lake/ (parquet) is not loaded: BigQuery reads gs:// only; copy it to Cloud Storage and give --location gs://…
-- There is nothing to load the table forms.feedback from.

-- NDJSON IN S3
-- BigQuery reads Cloud Storage only: copy s3://bucket/lines/form 1/ to gs://bucket/lines/form 1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'JSON',
  uris = [
    'gs://bucket/lines/form 1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson',
    'gs://bucket/lines/form 1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson'
  ]
);
ASSERT NOT ((SELECT COUNT(*) FROM `forms`.`feedback__load`) <> 9) AS 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew';
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;

-- NDJSON IN S3, BY A PATTERN
-- Right while no run commits: s3://bucket/lines/form 1/_SUCCESS has the same bytes before and after.
-- BigQuery reads Cloud Storage only: copy s3://bucket/lines/form 1/ to gs://bucket/lines/form 1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'JSON',
  uris = [
    'gs://bucket/lines/form 1/dt=*.ndjson'
  ]
);
ASSERT NOT ((SELECT COUNT(*) FROM `forms`.`feedback__load`) = 0) AS 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew';
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;

-- CSV HERE
-- /srv/it's/f.csv.gz (csv) is not loaded: bigquery statements here read parquet or ndjson; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO PARTS
-- BigQuery reads Cloud Storage only: copy s3://bucket/lake/form1/ to gs://bucket/lake/form1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
DELETE FROM `forms`.`feedback` WHERE TRUE;

-- NO PARTS, BY A PATTERN
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- BigQuery reads Cloud Storage only: copy s3://bucket/lake/form1/ to gs://bucket/lake/form1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = TRUE,
  column_name_character_map = 'V2',
  uris = [
    'gs://bucket/lake/form1/dt=*.parquet'
  ]
);
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;

-- NO RUN YET
-- No run has written s3://bucket/lake/form1/ yet.
-- BigQuery reads Cloud Storage only: copy s3://bucket/lake/form1/ to gs://bucket/lake/form1/ (Storage Transfer Service), or give another --location.
-- An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.
LOAD DATA OVERWRITE `forms`.`feedback__load` (
  `id` INT64,
  `select` STRING,
  `order` INT64,
  `group` BIGNUMERIC(38, 10),
  `narrow` NUMERIC(12, 2),
  `float` FLOAT64,
  `bool` BOOL,
  `date` DATE,
  `finished at` TIMESTAMP,
  `list` ARRAY<STRING>,
  `numbers` ARRAY<NUMERIC(7, 2)>,
  `instants` ARRAY<TIMESTAMP>,
  `Größe` STRING
)
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = TRUE,
  column_name_character_map = 'V2',
  uris = [
    'gs://bucket/lake/form1/dt=*.parquet'
  ]
);
ASSERT NOT ((SELECT COUNT(*) FROM `forms`.`feedback__load`) = 0) AS 'not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew';
BEGIN TRANSACTION;
DELETE FROM `forms`.`feedback` WHERE TRUE;
INSERT INTO `forms`.`feedback` (
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
FROM `forms`.`feedback__load`;
COMMIT TRANSACTION;
DROP TABLE `forms`.`feedback__load`;
