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
