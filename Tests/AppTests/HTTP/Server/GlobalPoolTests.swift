import Dispatch
import HTTPServer
import NIOCore
import Testing

@testable import App

/// Requests that may compute for milliseconds do not run on the database's thread.
@Suite struct GlobalPoolTests {
  @Test(
    arguments: [
      ("/api/v1/events?limit=20", [:], false),
      ("/api/v1/events", [.contentLength: "0"], false),
      ("/api/v1/events", [.contentLength: "8192"], false),
      ("/api/v1/events", [.contentLength: "8193"], true),
      ("/api/v1/events", [.contentLength: "99999999999999999999"], true),
      ("/api/v1/events", [.transferEncoding: "chunked"], true),
      ("/calendars/x.ics", [:], true),
      ("/docs", [:], true),
      ("/health/live", [:], false),
      ("/e/token", [:], true),
    ] as [(String, HTTPFields, Bool)])
  func `long bodies, pages and files may take long`(path: String, headers: HTTPFields, mayTakeLong: Bool) {
    let head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: path, headerFields: headers)
    #expect(Request(head: head, body: RequestBody(ByteBuffer())).mayTakeLong == mayTakeLong)
  }

  /// Runs tasks on one thread at a time, as the database's executor does.
  private final class Lane: TaskExecutor {
    private static let key = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "lane")

    init() { queue.setSpecific(key: Self.key, value: true) }

    static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) ?? false }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }

  @Test func `work leaves the thread of its caller, who continues there afterwards`() async throws {
    let places = await withTaskExecutorPreference(Lane()) {
      let before = Lane.isCurrent
      let inside = await GlobalPool.run {
        let atOnce = Lane.isCurrent
        await Task.yield()
        return [atOnce, Lane.isCurrent]
      }
      return [before] + inside + [Lane.isCurrent]
    }
    #expect(places == [true, false, false, true])
  }

  @Test func `a tag is found among a hundred, and none is looked for behind them`() {
    func request(_ tags: [String]) -> Request {
      let headers: HTTPFields = [.ifNoneMatch: tags.joined(separator: ", ")]
      let head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/", headerFields: headers)
      return Request(head: head, body: RequestBody(ByteBuffer()))
    }
    let others = (0..<99).map { "\"\($0)\"" }
    #expect(request(others + ["\"mine\""]).alreadyHas("\"mine\""))
    #expect(request(others + ["W/\"mine\""]).alreadyHas("\"mine\""))
    #expect(!request(others).alreadyHas("\"mine\""))
    #expect(!request(others + others + ["\"mine\""]).alreadyHas("\"mine\""))
  }
}
