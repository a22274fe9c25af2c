;; Drops resources that were never made.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "host" "drop" (func $drop (param i32)))
  (func (export "call") (param i32) (result i32)
    (call $drop (i32.const 4242))
    i32.const 256)
  (export "realloc" (func $realloc)))
