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

-- DuckDB reads s3:// with its extension httpfs. To give it credentials, run CREATE SECRET (TYPE s3, PROVIDER credential_chain, ENDPOINT '127.0.0.1:8535', USE_SSL false, URL_STYLE 'path', REGION 'eu-1');
-- A query is right if no run wrote meanwhile: then the file s3://bucket/lake/form 1/_SUCCESS is the same before and after it. Otherwise query again.
CREATE OR REPLACE VIEW "forms"."feedback" AS
SELECT
  *
FROM read_parquet('s3://bucket/lake/form 1/dt=*/part-*[0-9].parquet', hive_partitioning = false, union_by_name = true);

-- A query is right if no run wrote meanwhile: then the file /srv/it's [a] *?/_SUCCESS is the same before and after it. Otherwise query again.
CREATE OR REPLACE VIEW "forms"."feedback" AS
SELECT
  *
FROM read_json('/srv/it''s [[]a] [*][?]/part-*[0-9].ndjson.zst', hive_partitioning = false, format = 'newline_delimited', columns = {
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
    'Größe': 'VARCHAR',
    'a''b"c`d\e; --
f': 'VARCHAR'
  });

CREATE OR REPLACE VIEW "forms"."feedback" AS
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
  "Größe",
  "a'b""c`d\e; --
f"
FROM read_csv('/srv/f.csv.gz', hive_partitioning = false, header = true, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, auto_detect = false, strict_mode = true, all_varchar = true, union_by_name = true);

CREATE OR REPLACE VIEW "forms"."feedback" AS
SELECT
  *
FROM read_json('/srv/f.json', hive_partitioning = false, format = 'array', columns = {
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
    'Größe': 'VARCHAR',
    'a''b"c`d\e; --
f': 'VARCHAR'
  });
