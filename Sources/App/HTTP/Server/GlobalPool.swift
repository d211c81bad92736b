import HTTPServer

/// The threads for work that may compute for milliseconds.
///
/// Other requests run on the thread that receives the database's results (see `Database.executor`), where such work
/// would delay the results of all of them.
enum GlobalPool {
  static func run<Value>(_ work: @concurrent () async throws -> Value) async rethrows -> Value {
    try await withTaskExecutorPreference(globalConcurrentExecutor, operation: work)
  }
}

extension Request {
  private static let longBody = 8 << 10

  /// Whether the response may take milliseconds of processor time: to a long body, or with a page or a file, which are
  /// outside the API.
  var mayTakeLong: Bool {
    let path = uri.path
    guard path.hasPrefix("/api/") || path.hasPrefix("/health/") else { return true }
    guard let length = headers.value(of: .contentLength) else { return headers.value(of: .transferEncoding) != nil }
    return Int(length).map { $0 > Self.longBody } ?? true
  }
}
