;; Returns a list of more parts than there are numbers.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32)
    (i32.store (i32.const 276) (i32.const 0xffffffff))
    i32.const 256)
  (export "realloc" (func $realloc)))
