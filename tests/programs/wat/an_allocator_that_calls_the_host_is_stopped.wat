;; Calls the host while the host calls it: into the export by way of a host function, and out again.
(module $attack
  (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
  (func (export "realloc") (param i32 i32 i32 i32) (result i32) (call $log (i32.const 2) (i32.const 384) (i32.const 1) (i32.const 384) (i32.const 1)) i32.const 1024)
  (func (export "call") (param i32) (result i32) i32.const 256))
