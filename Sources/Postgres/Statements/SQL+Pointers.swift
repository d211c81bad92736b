extension SQL {
  private typealias Value = UnsafePointer<CChar>?

  /// Calls `body` with the parameters as libpq expects them: values, lengths and formats. The pointers are valid only
  /// during the call.
  func withPointers<Result>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    let count = template.parameterCount
    guard count > 0 else { return body(nil, nil, nil) }
    // On the stack, because this runs for each statement.
    return withUnsafeTemporaryAllocation(of: Value.self, capacity: count) { values in
      withUnsafeTemporaryAllocation(of: Int32.self, capacity: 2 * count) { numbers in
        withBytes { base in
          var index = 0
          for case .parameter(let parameter) in template.pieces {
            values.initializeElement(at: index, to: parameter.length < 0 ? nil : base + parameter.start)
            numbers.initializeElement(at: index, to: max(0, parameter.length))
            // A type that the server infers is sent as text.
            numbers.initializeElement(at: count + index, to: parameter.type == 0 ? 0 : 1)
            index += 1
          }
          let lengths = UnsafePointer(numbers.baseAddress)
          return body(UnsafePointer(values.baseAddress), lengths, lengths.map { $0 + count })
        }
      }
    }
  }

  /// Calls `body` with the place of the bytes. Without bytes, empty strings still need a place: libpq treats a null
  /// pointer as NULL.
  private func withBytes<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    var nothing: CChar = 0
    return withUnsafePointer(to: &nothing) { nothing in
      bytes.withUnsafeBytes { body($0.bindMemory(to: CChar.self).baseAddress ?? nothing) }
    }
  }
}
