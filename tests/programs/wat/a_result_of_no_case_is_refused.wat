;; Returns a result that is neither good nor bad.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32)
    (i32.store8 (i32.const 256) (i32.const 9))
    i32.const 256)
  (export "realloc" (func $realloc)))
