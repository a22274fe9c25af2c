;; Hands over bytes that are no text.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
  (func (export "call") (param i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 0x80c0ffed))
    (call $log (i32.const 2) (i32.const 384) (i32.const 1) (i32.const 1024) (i32.const 4))
    i32.const 256)
  (export "realloc" (func $realloc)))
