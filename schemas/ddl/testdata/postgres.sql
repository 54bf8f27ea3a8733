CREATE TABLE IF NOT EXISTS "forms"."feedback" (
  "id" bigint PRIMARY KEY,
  "select" text,
  "order" bigint,
  "group" numeric(38, 10),
  "narrow" numeric(12, 2),
  "float" double precision,
  "bool" boolean,
  "date" date,
  "finished at" timestamptz NOT NULL,
  "list" text[] NOT NULL,
  "numbers" numeric(7, 2)[],
  "instants" timestamptz[],
  "Größe" text,
  "a'b""c`d\e; --
f" text
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
-- s3://bucket/lake/form1/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- PARQUET IN S3, BY A PATTERN
-- s3://bucket/lake/form1/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- PARQUET HERE
-- /srv/lake/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- PARQUET HERE, BY A PATTERN
-- /srv/lake/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NDJSON IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- For psql 15 or newer, with -v ON_ERROR_STOP=1: \copy reads the files where psql runs.
\set ON_ERROR_STOP on
BEGIN;
CREATE TEMPORARY TABLE formetl_load (result jsonb) ON COMMIT DROP;
\copy formetl_load FROM PROGRAM 'aws s3 cp --endpoint-url ''https://s3.example.com'' --region ''eu-west-1'' ''s3://bucket/lines/form 1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson'' -' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8')
\copy formetl_load FROM PROGRAM 'aws s3 cp --endpoint-url ''https://s3.example.com'' --region ''eu-west-1'' ''s3://bucket/lines/form 1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson'' -' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8')
DO 'BEGIN IF (SELECT count(*) FROM formetl_load) <> 9 THEN RAISE EXCEPTION ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew''; END IF; END';
DELETE FROM "forms"."feedback";
INSERT INTO "forms"."feedback" (
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
)
SELECT
  (result ->> 'id')::bigint,
  result ->> 'select',
  (result ->> 'order')::bigint,
  (result ->> 'group')::numeric(38, 10),
  (result ->> 'narrow')::numeric(12, 2),
  (result ->> 'float')::double precision,
  (result ->> 'bool')::boolean,
  (result ->> 'date')::date,
  (result ->> 'finished at')::timestamptz,
  CASE WHEN jsonb_typeof((result -> 'list')) = 'array' THEN ARRAY(SELECT e::text FROM jsonb_array_elements_text((result -> 'list')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  CASE WHEN jsonb_typeof((result -> 'numbers')) = 'array' THEN ARRAY(SELECT e::numeric(7, 2) FROM jsonb_array_elements_text((result -> 'numbers')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  CASE WHEN jsonb_typeof((result -> 'instants')) = 'array' THEN ARRAY(SELECT e::timestamptz FROM jsonb_array_elements_text((result -> 'instants')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  result ->> 'Größe'
FROM formetl_load;
COMMIT;

-- NDJSON IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- For psql 15 or newer, with -v ON_ERROR_STOP=1: \copy reads the files where psql runs.
\set ON_ERROR_STOP on
BEGIN;
CREATE TEMPORARY TABLE formetl_load (result jsonb) ON COMMIT DROP;
\copy formetl_load FROM PROGRAM 'aws s3 cp --endpoint-url ''https://s3.example.com'' --region ''eu-west-1'' ''s3://bucket/lines/form 1/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson'' -' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8')
\copy formetl_load FROM PROGRAM 'aws s3 cp --endpoint-url ''https://s3.example.com'' --region ''eu-west-1'' ''s3://bucket/lines/form 1/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson'' -' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8')
DO 'BEGIN IF (SELECT count(*) FROM formetl_load) <> 9 THEN RAISE EXCEPTION ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew''; END IF; END';
DELETE FROM "forms"."feedback";
INSERT INTO "forms"."feedback" (
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
)
SELECT
  (result ->> 'id')::bigint,
  result ->> 'select',
  (result ->> 'order')::bigint,
  (result ->> 'group')::numeric(38, 10),
  (result ->> 'narrow')::numeric(12, 2),
  (result ->> 'float')::double precision,
  (result ->> 'bool')::boolean,
  (result ->> 'date')::date,
  (result ->> 'finished at')::timestamptz,
  CASE WHEN jsonb_typeof((result -> 'list')) = 'array' THEN ARRAY(SELECT e::text FROM jsonb_array_elements_text((result -> 'list')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  CASE WHEN jsonb_typeof((result -> 'numbers')) = 'array' THEN ARRAY(SELECT e::numeric(7, 2) FROM jsonb_array_elements_text((result -> 'numbers')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  CASE WHEN jsonb_typeof((result -> 'instants')) = 'array' THEN ARRAY(SELECT e::timestamptz FROM jsonb_array_elements_text((result -> 'instants')) WITH ORDINALITY AS r(e, n) ORDER BY n) END,
  result ->> 'Größe'
FROM formetl_load;
COMMIT;

-- CSV HERE
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- For psql 15 or newer, with -v ON_ERROR_STOP=1: \copy reads the files where psql runs.
-- psql before 18 ends its input at a line that is \. alone, also within a value: that fails, and the table stays as it is; NDJSON has no such lines.
\set ON_ERROR_STOP on
BEGIN;
CREATE TEMPORARY TABLE formetl_load (
  "id" text,
  "select" text,
  "order" text,
  "group" text,
  "narrow" text,
  "float" text,
  "bool" text,
  "date" text,
  "finished at" text,
  "list" text,
  "numbers" text,
  "instants" text,
  "Größe" text
) ON COMMIT DROP;
\copy formetl_load FROM PROGRAM 'gzip -dc ''/srv/it''\''''s/f.csv.gz''' WITH (FORMAT csv, HEADER match, ENCODING 'UTF8')
DO 'BEGIN IF (SELECT count(*) FROM formetl_load) = 0 THEN RAISE EXCEPTION ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew''; END IF; END';
DELETE FROM "forms"."feedback";
INSERT INTO "forms"."feedback" (
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
)
SELECT
  "id"::bigint,
  "select",
  "order"::bigint,
  "group"::numeric(38, 10),
  "narrow"::numeric(12, 2),
  "float"::double precision,
  "bool"::boolean,
  "date"::date,
  "finished at"::timestamptz,
  CASE WHEN "list" IS NULL THEN NULL WHEN "list" = '' THEN '{}' ELSE ARRAY(SELECT (CASE WHEN m[1] = '\N' THEN NULL ELSE regexp_replace(m[1], '\\(.)', '\1', 'g') END)::text FROM regexp_matches("list" || '|', '((?:[^|\\]|\\.)*)\|', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n) END,
  CASE WHEN "numbers" IS NULL THEN NULL WHEN "numbers" = '' THEN '{}' ELSE ARRAY(SELECT (CASE WHEN m[1] = '\N' THEN NULL ELSE regexp_replace(m[1], '\\(.)', '\1', 'g') END)::numeric(7, 2) FROM regexp_matches("numbers" || '|', '((?:[^|\\]|\\.)*)\|', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n) END,
  CASE WHEN "instants" IS NULL THEN NULL WHEN "instants" = '' THEN '{}' ELSE ARRAY(SELECT (CASE WHEN m[1] = '\N' THEN NULL ELSE regexp_replace(m[1], '\\(.)', '\1', 'g') END)::timestamptz FROM regexp_matches("instants" || '|', '((?:[^|\\]|\\.)*)\|', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n) END,
  "Größe"
FROM formetl_load;
COMMIT;

-- NO PARTS
-- s3://bucket/lake/form1/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO PARTS, BY A PATTERN
-- s3://bucket/lake/form1/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO RUN YET
-- s3://bucket/lake/form1/ (parquet) is not loaded: postgres statements here read ndjson or csv; add such an output to the definition
-- There is nothing to load the table forms.feedback from.
