;; Says a level of the log that there is not.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
  (func (export "call") (param i32) (result i32)
    (call $log (i32.const 0x7fffff06) (i32.const 384) (i32.const 1) (i32.const 384) (i32.const 1))
    i32.const 256)
  (export "realloc" (func $realloc)))
