;; Returns a list whose parts are all the same text, so that little memory becomes much.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (func (export "call") (param i32) (result i32) (local $n i32) (local $at i32)
    (drop (memory.grow (i32.const 16)))
    (loop
      (local.set $at (i32.add (i32.const 0x20000) (i32.shl (local.get $n) (i32.const 5))))
      (i32.store (i32.add (local.get $at) (i32.const 8)) (i32.const 0x10000))
      (i32.store (i32.add (local.get $at) (i32.const 12)) (i32.const 0x10000))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if 0 (i32.lt_u (local.get $n) (i32.const 30000))))
    (i32.store (i32.const 272) (i32.const 0x20000))
    (i32.store (i32.const 276) (local.get $n))
    i32.const 256)
  (export "realloc" (func $realloc)))
