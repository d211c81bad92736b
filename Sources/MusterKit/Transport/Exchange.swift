import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A request and its response, while they are under way. One task reads the response.
final class Exchange: Sendable {
  /// Bytes of a stream that wait for a slow reader. With more, the stream breaks off.
  static let streamBacklog = 4 << 20

  struct Head: Sendable {
    let status: Int
    /// The names are in lower case.
    let headers: [String: String]
  }

  private enum Step: Sendable {
    case head(Head)
    case chunk(Data)
    case end
    case failure(any Error)
  }

  private struct State {
    var head: Head?
    /// The bytes that have arrived and were not read yet.
    var waiting = Data()
    /// The number of bytes that the head announces, if it does.
    var expected: Int64?
    var received: Int64 = 0
    var end: Result<Void, any Error>?
    var reader: (wantsHead: Bool, continuation: CheckedContinuation<Step, Never>)?

    mutating func step(wantsHead: Bool) -> Step? {
      if wantsHead, let head { return .head(head) }
      if !wantsHead, !waiting.isEmpty {
        defer { waiting = Data() }
        return .chunk(waiting)
      }
      switch end {
      case nil: return nil
      case .success where wantsHead: return .failure(URLError(.badServerResponse))
      case .success: return .end
      case .failure(let error): return .failure(error)
      }
    }
  }

  let task: URLSessionDataTask
  private let maximumBacklog: Int
  private let state = Guarded(State())

  init(_ task: URLSessionDataTask, maximumBacklog: Int) {
    self.task = task
    self.maximumBacklog = maximumBacklog
  }

  // MARK: For the reader

  func head() async throws -> Head {
    switch await next(wantsHead: true) {
    case .head(let head): return head
    case .failure(let error): throw error
    case .chunk, .end: throw URLError(.badServerResponse)
    }
  }

  /// The next bytes; nil at the end.
  func chunk() async throws -> Data? {
    switch await next(wantsHead: false) {
    case .chunk(let data): return data
    case .end: return nil
    case .failure(let error): throw error
    case .head: throw URLError(.badServerResponse)
    }
  }

  private func next(wantsHead: Bool) async -> Step {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let step = state.withLock { state -> Step? in
          let step = state.step(wantsHead: wantsHead)
          if step == nil { state.reader = (wantsHead, continuation) }
          return step
        }
        if let step { continuation.resume(returning: step) }
      }
    } onCancel: {
      finish(.failure(CancellationError()))
      task.cancel()
    }
  }

  /// Gives up the request, if it is still under way.
  func cancel() {
    if finish(.failure(CancellationError())) { task.cancel() }
  }

  // MARK: For the session's delegate

  func begin(_ response: HTTPURLResponse) {
    var headers: [String: String] = [:]
    for (name, value) in response.allHeaderFields {
      headers["\(name)".lowercased()] = "\(value)"
    }
    let hasPlainBody =
      headers["content-encoding"] == nil && response.statusCode != 304 && task.originalRequest?.httpMethod != "HEAD"
    let head = Head(status: response.statusCode, headers: headers)
    change { state in
      state.head = head
      state.expected = hasPlainBody ? headers["content-length"].flatMap(Int64.init) : nil
    }
  }

  func add(_ data: Data) {
    var isTooMuch = false
    change { state in
      guard state.end == nil else { return }
      state.waiting.append(data)
      state.received += Int64(data.count)
      isTooMuch = state.waiting.count > maximumBacklog
    }
    if isTooMuch, finish(.failure(URLError(.dataLengthExceedsMaximum))) { task.cancel() }
  }

  func complete(_ error: (any Error)?) {
    finish(error.map { .failure($0) } ?? .success(()))
  }

  /// - Returns: whether this ended the exchange.
  @discardableResult
  private func finish(_ result: Result<Void, any Error>) -> Bool {
    var isFirst = false
    change { state in
      guard state.end == nil else { return }
      isFirst = true
      let isCut = state.expected.map { state.received < $0 } ?? false
      if case .success = result, isCut {
        state.end = .failure(URLError(.networkConnectionLost))
      } else {
        state.end = result
      }
    }
    return isFirst
  }

  private func change(_ body: (inout State) -> Void) {
    let woken = state.withLock { state -> (CheckedContinuation<Step, Never>, Step)? in
      body(&state)
      guard let reader = state.reader, let step = state.step(wantsHead: reader.wantsHead) else { return nil }
      state.reader = nil
      return (reader.continuation, step)
    }
    if let (continuation, step) = woken { continuation.resume(returning: step) }
  }
}
