CREATE TABLE IF NOT EXISTS "forms"."feedback" (
  "id" BIGINT NOT NULL,
  "select" VARCHAR(65535),
  "order" BIGINT,
  "group" DECIMAL(38, 10),
  "narrow" DECIMAL(12, 2),
  "float" DOUBLE PRECISION,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMPTZ NOT NULL,
  "list" SUPER NOT NULL,
  "numbers" SUPER,
  "instants" SUPER,
  "Größe" VARCHAR(65535),
  "a'b""c`d\e; --
f" VARCHAR(65535)
);
COMMENT ON TABLE "forms"."feedback" IS 'It''s a form; -- \\ */';
COMMENT ON COLUMN "forms"."feedback"."id" IS '(result_id)';
COMMENT ON COLUMN "forms"."feedback"."select" IS 'It''s "quoted" `so`; DROP TABLE x; -- \\'' and lines (item:1)';
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
-- COPY reads its list of parts from s3://bucket/lake/form1.redshift-manifest.json; --only manifest prints it:
-- formetl schema ddl DEFINITION --dialect redshift --only manifest > parts.json && aws s3 cp parts.json 's3://bucket/lake/form1.redshift-manifest.json'
BEGIN;
CREATE TEMPORARY TABLE formetl_load (
  "id" BIGINT,
  "select" VARCHAR(65535),
  "order" BIGINT,
  "group" DECIMAL(38, 10),
  "narrow" DECIMAL(12, 2),
  "float" DOUBLE PRECISION,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP,
  "list" SUPER,
  "numbers" SUPER,
  "instants" SUPER,
  "Größe" VARCHAR(65535)
);
COPY formetl_load
FROM 's3://bucket/lake/form1.redshift-manifest.json'
IAM_ROLE default
FORMAT AS PARQUET
FILLRECORD
SERIALIZETOJSON
MANIFEST;
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
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at" AT TIME ZONE 'UTC',
  "list",
  "numbers",
  "instants",
  "Größe"
FROM formetl_load;
DROP TABLE formetl_load;
COMMIT;

-- PARQUET IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- COPY reads its list of parts from s3://bucket/lake/form1.redshift-manifest.json; --only manifest prints it:
-- formetl schema ddl DEFINITION --dialect redshift --only manifest > parts.json && aws s3 cp parts.json 's3://bucket/lake/form1.redshift-manifest.json'
BEGIN;
CREATE TEMPORARY TABLE formetl_load (
  "id" BIGINT,
  "select" VARCHAR(65535),
  "order" BIGINT,
  "group" DECIMAL(38, 10),
  "narrow" DECIMAL(12, 2),
  "float" DOUBLE PRECISION,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP,
  "list" SUPER,
  "numbers" SUPER,
  "instants" SUPER,
  "Größe" VARCHAR(65535)
);
COPY formetl_load
FROM 's3://bucket/lake/form1.redshift-manifest.json'
IAM_ROLE default
FORMAT AS PARQUET
FILLRECORD
SERIALIZETOJSON
MANIFEST;
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
  "id",
  "select",
  "order",
  "group",
  "narrow",
  "float",
  "bool",
  "date",
  "finished at" AT TIME ZONE 'UTC',
  "list",
  "numbers",
  "instants",
  "Größe"
FROM formetl_load;
DROP TABLE formetl_load;
COMMIT;

-- PARQUET HERE
-- /srv/lake/ (parquet) is not loaded: the engine reads s3:// only; copy it there and give --location
-- There is nothing to load the table forms.feedback from.

-- PARQUET HERE, BY A PATTERN
-- /srv/lake/ (parquet) is not loaded: the engine reads s3:// only; copy it there and give --location
-- There is nothing to load the table forms.feedback from.

-- NDJSON IN S3
-- s3://bucket/lines/form 1/ (ndjson) is not loaded: redshift statements here read parquet; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NDJSON IN S3, BY A PATTERN
-- s3://bucket/lines/form 1/ (ndjson) is not loaded: redshift statements here read parquet; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- CSV HERE
-- /srv/it's/f.csv.gz (csv) is not loaded: redshift statements here read parquet; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO PARTS
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- COPY reads its list of parts from s3://bucket/lake/form1.redshift-manifest.json; --only manifest prints it:
-- formetl schema ddl DEFINITION --dialect redshift --only manifest > parts.json && aws s3 cp parts.json 's3://bucket/lake/form1.redshift-manifest.json'
BEGIN;
DELETE FROM "forms"."feedback";
COMMIT;

-- NO PARTS, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- COPY reads its list of parts from s3://bucket/lake/form1.redshift-manifest.json; --only manifest prints it:
-- formetl schema ddl DEFINITION --dialect redshift --only manifest > parts.json && aws s3 cp parts.json 's3://bucket/lake/form1.redshift-manifest.json'
BEGIN;
DELETE FROM "forms"."feedback";
COMMIT;

-- NO RUN YET
-- s3://bucket/lake/form1/ (parquet) is not loaded: Redshift's manifest names parts and their sizes, and no run has written any yet; run the definition first
-- There is nothing to load the table forms.feedback from.
