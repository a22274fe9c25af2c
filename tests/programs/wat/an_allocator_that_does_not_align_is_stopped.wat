;; Says that there is room where nothing can be.
(module $attack
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1025)
  (func (export "call") (param i32) (result i32) i32.const 256))
