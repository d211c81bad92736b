extension SQL {
  private typealias Value = UnsafePointer<CChar>?

  /// Calls `body` with the parameters as libpq expects them: values, lengths and formats. The pointers are valid only
  /// during the call.
  func withPointers<Result>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    guard !parameters.isEmpty else { return body(nil, nil, nil) }
    // On the stack, because this runs for each statement.
    return withUnsafeTemporaryAllocation(of: Value.self, capacity: parameters.count) { values in
      withUnsafeTemporaryAllocation(of: Int32.self, capacity: 2 * parameters.count) { numbers in
        withBytes { base in
          for (index, parameter) in parameters.enumerated() {
            values.initializeElement(at: index, to: parameter.range.map { base + $0.lowerBound })
            numbers.initializeElement(at: index, to: Int32(clamping: parameter.range?.count ?? 0))
            // A type that the server infers is sent as text.
            numbers.initializeElement(at: parameters.count + index, to: parameter.type == 0 ? 0 : 1)
          }
          let lengths = UnsafePointer(numbers.baseAddress)
          return body(UnsafePointer(values.baseAddress), lengths, lengths.map { $0 + parameters.count })
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
