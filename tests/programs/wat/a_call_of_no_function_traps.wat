;; Calls what is not in its table.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (table 1 funcref)
  (func (export "call") (param i32) (result i32)
    (call_indirect (param) (i32.const 0))
    (call_indirect (param) (i32.const 70000))
    i32.const 256)
  (export "realloc" (func $realloc)))
