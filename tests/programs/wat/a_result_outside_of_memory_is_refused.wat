;; Returns a place outside of memory.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32) i32.const -8)
  (export "realloc" (func $realloc)))
