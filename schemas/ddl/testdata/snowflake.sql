CREATE TABLE IF NOT EXISTS "forms"."feedback" (
  "id" BIGINT NOT NULL COMMENT '(result_id)',
  "select" VARCHAR COMMENT 'It''s "quoted" `so`; DROP TABLE x; -- \\'' and lines (item:1)',
  "order" BIGINT COMMENT '*/ $$ /* {x} %s right to left (item:2)',
  "group" NUMBER(38, 10) COMMENT 'Цвет 你 (item:3)',
  "narrow" NUMBER(12, 2) COMMENT '(item:4)',
  "float" DOUBLE COMMENT 'long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long l (item:5)',
  "bool" BOOLEAN COMMENT 'Yes? (item:6)',
  "date" DATE COMMENT '(item:7)',
  "finished at" TIMESTAMP_LTZ(6) NOT NULL COMMENT 'Date finish (meta:date_finish)',
  "list" ARRAY NOT NULL COMMENT '(item:8)',
  "numbers" ARRAY COMMENT '(item:9)',
  "instants" ARRAY COMMENT '(item:10)',
  "Größe" VARCHAR COMMENT '(item:11)',
  "a'b""c`d\e; --
f" VARCHAR COMMENT '(item:12)'
) COMMENT = 'It''s a form; -- \\ */';

-- PARQUET IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lake/form1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
FILES = (
  ''dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet'',
  ''dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet''
)
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded <> 9) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- PARQUET IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lake/form1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
PATTERN = ''.*part-[^/]*[.]parquet''
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded = 0) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- PARQUET HERE
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load";
PUT 'file:///srv/lake/dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet' '@"forms"."formetl_load"/dt=2026-01-01/' AUTO_COMPRESS = FALSE OVERWRITE = TRUE;
PUT 'file:///srv/lake/dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet' '@"forms"."formetl_load"/dt=__HIVE_DEFAULT_PARTITION__/' AUTO_COMPRESS = FALSE OVERWRITE = TRUE;
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
FILES = (
  ''dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet'',
  ''dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet''
)
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded <> 9) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- PARQUET HERE, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: /srv/lake/_SUCCESS has the same bytes before and after.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load";
PUT 'file:///srv/lake/dt=*/part-*.parquet' '@"forms"."formetl_load"/' AUTO_COMPRESS = FALSE OVERWRITE = TRUE;
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
PATTERN = ''.*part-[^/]*[.]parquet''
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded = 0) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- NDJSON IN S3
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lines/form 1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
FILES = (
  ''dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.ndjson'',
  ''dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.ndjson''
)
FILE_FORMAT = (TYPE = JSON COMPRESSION = AUTO TIMESTAMP_FORMAT = AUTO)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded <> 9) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- NDJSON IN S3, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lines/form 1/_SUCCESS has the same bytes before and after.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lines/form 1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
PATTERN = ''.*part-[^/]*[.]ndjson''
FILE_FORMAT = (TYPE = JSON COMPRESSION = AUTO TIMESTAMP_FORMAT = AUTO)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded = 0) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- CSV HERE
-- /srv/it's/f.csv.gz (csv) is not loaded: snowflake statements here read parquet or ndjson or json; add such an output to the definition
-- There is nothing to load the table forms.feedback from.

-- NO PARTS
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
DELETE FROM "forms"."feedback";
COMMIT;

-- NO PARTS, BY A PATTERN
-- The column a'b"c`d\e; -- f is not in the files yet and stays null.
-- Right while no run commits: s3://bucket/lake/form1/_SUCCESS has the same bytes before and after.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lake/form1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
PATTERN = ''.*part-[^/]*[.]parquet''
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe"
FROM "forms"."formetl_load";
END;';
COMMIT;

-- NO RUN YET
-- No run has written s3://bucket/lake/form1/ yet.
-- Give the name of your storage integration by --integration.
CREATE OR REPLACE TEMPORARY STAGE "forms"."formetl_load" URL = 's3://bucket/lake/form1/' STORAGE_INTEGRATION = "formetl";
CREATE OR REPLACE TEMPORARY TABLE "forms"."formetl_load" (
  "id" BIGINT,
  "select" VARCHAR,
  "order" BIGINT,
  "group" NUMBER(38, 10),
  "narrow" NUMBER(12, 2),
  "float" DOUBLE,
  "bool" BOOLEAN,
  "date" DATE,
  "finished at" TIMESTAMP_LTZ(6),
  "list" ARRAY,
  "numbers" ARRAY,
  "instants" ARRAY,
  "Größe" VARCHAR,
  "a'b""c`d\e; --
f" VARCHAR
);
EXECUTE IMMEDIATE 'DECLARE
  loaded INTEGER;
  not_whole EXCEPTION (-20001, ''not all parts were loaded, and the table stays as it was; run the definition, and write the statements anew'');
BEGIN
COPY INTO "forms"."formetl_load"
FROM @"forms"."formetl_load"
PATTERN = ''.*part-[^/]*[.]parquet''
FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)
MATCH_BY_COLUMN_NAME = CASE_SENSITIVE
ON_ERROR = ABORT_STATEMENT
FORCE = TRUE;
SELECT COUNT(*) INTO :loaded FROM "forms"."formetl_load";
IF (loaded = 0) THEN
  RAISE not_whole;
END IF;
INSERT OVERWRITE INTO "forms"."feedback" (
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
  "a''b""c`d\\e; --
f"
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
  "finished at",
  "list",
  "numbers",
  "instants",
  "Größe",
  "a''b""c`d\\e; --
f"
FROM "forms"."formetl_load";
END;';
COMMIT;
