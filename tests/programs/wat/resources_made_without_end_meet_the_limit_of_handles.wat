;; Makes resources and drops none.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "host" "new" (func $new (param i32) (result i32)))
  (func (export "call") (param i32) (result i32)
    (loop (drop (call $new (i32.const 7))) br 0)
    i32.const 256)
  (export "realloc" (func $realloc)))
