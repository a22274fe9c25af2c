;; Returns a place where no result can be.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32) i32.const 257)
  (export "realloc" (func $realloc)))
