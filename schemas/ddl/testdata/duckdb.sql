CREATE TABLE IF NOT EXISTS "forms"."feedback" (
  "id" BIGINT NOT NULL,
  "select" VARCHAR,
  "order" BIGINT,
  "group" DECIMAL(38, 10),
  "narrow" DECIMAL(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP WITH TIME ZONE NOT NULL,
  "list" VARCHAR[] NOT NULL,
  "numbers" DECIMAL(7, 2)[],
  "instants" TIMESTAMP WITH TIME ZONE[],
  "Größe" VARCHAR,
  "a'b""c`d\e; --
f" VARCHAR
);
COMMENT ON TABLE "forms"."feedback" IS 'It''s a form; -- \ */';
COMMENT ON COLUMN "forms"."feedback"."id" IS '(result_id)';
COMMENT ON COLUMN "forms"."feedback"."select" IS 'It''s "quoted" `so`; DROP TABLE x; -- \'' and lines (item:1)';
COMMENT ON COLUMN "forms"."feedback"."order" IS '*/ $$ /* {x} %s right to left (item:2)';
COMMENT ON COLUMN "forms"."feedback"."group" IS 'Цвет 你 (item:3)';
COMMENT ON COLUMN "forms"."feedback"."narrow" IS '(item:4)';
COMMENT ON COLUMN "forms"."feedback"."float" IS 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long l (item:5)';
COMMENT ON COLUMN "forms"."feedback"."bool" IS 'Yes? (item:6)';
COMMENT ON COLUMN "forms"."feedback"."date" IS '(item:7)';
COMMENT ON COLUMN "forms"."feedback"."finished at" IS 'Date finish (meta:date_finish)';
COMMENT ON COLUMN "forms"."feedback"."list" IS '(item:8)';
COMMENT ON COLUMN "forms"."feedback"."numbers" IS '(item:9)';
COMMENT ON COLUMN "forms"."feedback"."instants" IS '(item:10)';
COMMENT ON COLUMN "forms"."feedback"."Größe" IS '(item:11)';
COMMENT ON COLUMN "forms"."feedback"."a'b""c`d\e; --
f" IS '(item:12)';

-- PARQUET IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_parquet([
    's3://bucket/lake/form1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet',
    's3://bucket/lake/form1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- PARQUET IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_parquet([
    's3://bucket/lake/form1/dt=*/part-*.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- PARQUET HERE
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_parquet([
    '/srv/lake/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet',
    '/srv/lake/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- PARQUET HERE, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: /srv/lake/_SUCCESS has the same bytes before and after.
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_parquet([
    '/srv/lake/dt=*/part-*.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- NDJSON IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_json([
    's3://bucket/lines/form 1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson',
    's3://bucket/lines/form 1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson'
  ], format = 'newline_delimited', hive_partitioning = false, columns = {
    'id': 'BIGINT',
    'select': 'VARCHAR',
    'order': 'BIGINT',
    'group': 'DECIMAL(38, 10)',
    'narrow': 'DECIMAL(12, 2)',
    'float': 'DOUBLE',
    'bool': 'BOOLEAN',
    'date': 'DATE',
    'finished at': 'TIMESTAMP WITH TIME ZONE',
    'list': 'VARCHAR[]',
    'numbers': 'DECIMAL(7, 2)[]',
    'instants': 'TIMESTAMP WITH TIME ZONE[]',
    'Größe': 'VARCHAR'
  });
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- NDJSON IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lines/form 1/_SUCCESS has the same bytes before and after.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_json([
    's3://bucket/lines/form 1/dt=*/part-*.ndjson'
  ], format = 'newline_delimited', hive_partitioning = false, columns = {
    'id': 'BIGINT',
    'select': 'VARCHAR',
    'order': 'BIGINT',
    'group': 'DECIMAL(38, 10)',
    'narrow': 'DECIMAL(12, 2)',
    'float': 'DOUBLE',
    'bool': 'BOOLEAN',
    'date': 'DATE',
    'finished at': 'TIMESTAMP WITH TIME ZONE',
    'list': 'VARCHAR[]',
    'numbers': 'DECIMAL(7, 2)[]',
    'instants': 'TIMESTAMP WITH TIME ZONE[]',
    'Größe': 'VARCHAR'
  });
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- CSV HERE
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  CAST("id" AS BIGINT) AS "id",
  "select",
  CAST("order" AS BIGINT) AS "order",
  CAST("group" AS DECIMAL(38, 10)) AS "group",
  CAST("narrow" AS DECIMAL(12, 2)) AS "narrow",
  CAST("float" AS DOUBLE) AS "float",
  CAST("bool" AS BOOLEAN) AS "bool",
  CAST("date" AS DATE) AS "date",
  CAST("finished at" AS TIMESTAMP WITH TIME ZONE) AS "finished at",
  CAST(CASE WHEN "list" = '' THEN [] ELSE list_transform(regexp_extract_all("list" || '|', '((?:[^|\\]|\\.)*)\|', 1), lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END AS VARCHAR[]) AS "list",
  CAST(CASE WHEN "numbers" = '' THEN [] ELSE list_transform(regexp_extract_all("numbers" || '|', '((?:[^|\\]|\\.)*)\|', 1), lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END AS DECIMAL(7, 2)[]) AS "numbers",
  CAST(CASE WHEN "instants" = '' THEN [] ELSE list_transform(regexp_extract_all("instants" || '|', '((?:[^|\\]|\\.)*)\|', 1), lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END AS TIMESTAMP WITH TIME ZONE[]) AS "instants",
  "Größe"
FROM read_csv([
    '/srv/it''s/f.csv.gz'
  ], header = true, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, auto_detect = false, strict_mode = true, all_varchar = true, union_by_name = true, hive_partitioning = false);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- NO PARTS
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
DELETE FROM "forms"."feedback";

-- NO PARTS, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM read_parquet([
    's3://bucket/lake/form1/dt=*/part-*.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;

-- NO RUN YET
-- No run has written s3://bucket/lake/form1/ yet.
-- DuckDB reads s3:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);
-- duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.
DROP TABLE IF EXISTS temp.formetl_load;
CREATE TEMPORARY TABLE formetl_load AS
SELECT
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe",
  "a'b""c`d\e; --
f"
FROM read_parquet([
    's3://bucket/lake/form1/dt=*/part-*.parquet'
  ], hive_partitioning = true, union_by_name = true);
BEGIN TRANSACTION;
DELETE FROM "forms"."feedback" WHERE (SELECT count(*) FROM temp.formetl_load) >= 0;
INSERT INTO "forms"."feedback" BY NAME SELECT * FROM temp.formetl_load;
SELECT CASE WHEN loaded = read THEN loaded ELSE error('the rows could not be inserted, and the table stays as it was; see the error before') END AS loaded
FROM (SELECT (SELECT count(*) FROM "forms"."feedback") AS loaded, (SELECT count(*) FROM temp.formetl_load) AS read);
COMMIT;
DROP TABLE temp.formetl_load;
