;; Asks for a table as large as numbers go, and for one a little larger than the pool has.
(module $attack
  (import "mem" "memory" (memory 1))
  (import "mem" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (table $t 1 funcref)
  (func (export "call") (param i32) (result i32)
    (if (i32.ne (table.grow $t (ref.null func) (i32.const 0xfffffffe)) (i32.const -1)) (then unreachable))
    (if (i32.ne (table.grow $t (ref.null func) (i32.const 40000)) (i32.const -1)) (then unreachable))
    i32.const 256)
  (export "realloc" (func $realloc)))
