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
