;; Says that there is room outside of memory.
(module $attack
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const -16)
  (func (export "call") (param i32) (result i32) i32.const 256))
