;; Hands over halves of characters in 16-bit units.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "host" "log-utf16" (func $log (param i32 i32 i32 i32 i32)))
  (func (export "call") (param i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 0xd800d800))
    (call $log (i32.const 2) (i32.const 384) (i32.const 1) (i32.const 1024) (i32.const 2))
    i32.const 256)
  (export "realloc" (func $realloc)))
