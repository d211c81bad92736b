import Foundation
import Testing

@testable import MusterKit

@Suite struct StreamReconnectionTests {
  private static func item(_ number: Int) -> String {
    """
    {"id":"01900000-0000-7000-8004-00000000000\(number)","createdAt":"2026-05-01T09:30:05Z","readAt":null,\
    "message":"m\(number)","locKey":"k","locArgs":[],"type":"event-cancelled"}
    """
  }

  private static func notification(_ number: Int) -> String {
    "id: \(number)\nevent: notification\ndata: \(item(number))\n\n"
  }

  private static func stream(_ parts: String..., type: String = "text/event-stream") -> TransportStream {
    let (chunks, continuation) = AsyncThrowingStream<Data, any Error>.makeStream()
    for part in parts { continuation.yield(Data(part.utf8)) }
    continuation.finish(throwing: parts.count > 1 ? ScriptedTransport.Lost() : nil)
    return TransportStream(status: 200, headers: ["content-type": type], chunks: chunks)
  }

  private static func refusal(_ response: TransportResponse) -> TransportStream {
    let (chunks, continuation) = AsyncThrowingStream<Data, any Error>.makeStream()
    continuation.yield(response.body)
    continuation.finish()
    return TransportStream(status: response.status, headers: response.headers, chunks: chunks)
  }

  /// A transport whose streams are these, one after the other; then the session has ended.
  private static func transport(_ streams: [TransportStream]) -> ScriptedTransport {
    let left = Locked(streams)
    return ScriptedTransport(
      { request in try .tokens(request.isRefresh ? 2 : 1) },
      streams: { _ in
        try left.change { streams in
          guard !streams.isEmpty else { return refusal(.problem(.sessionEnded, status: 401)) }
          let next = streams.removeFirst()
          if next.status == 0 { throw ScriptedTransport.Lost() }
          return next
        }
      })
  }

  private static func lost() -> TransportStream {
    TransportStream(status: 0, chunks: AsyncThrowingStream { nil })
  }

  /// - Returns: the messages, `connected`, or the names of the collections.
  private static func read(_ client: MusterClient, after id: String? = nil) async -> [String] {
    var events: [String] = []
    do {
      for try await event in client.notifications.stream(after: id) {
        switch event {
        case .connected: events.append("connected")
        case .notification(let item): events.append(item.message)
        case .changed(let stamps): events.append(stamps.keys.map(\.rawValue).sorted().joined(separator: "+"))
        }
      }
    } catch {
      events.append("\(error)")
    }
    return events
  }

  @Test func `the stream continues after the last complete event`() async throws {
    let transport = Self.transport([
      Self.stream("retry: 1000\nid: 0\n\n" + Self.notification(1), "id: 2\nevent: notif"),
      Self.lost(),
      Self.stream(
        Self.notification(2) + "event: changed\ndata: {\"events\":\"s\",\"unknown\":\"s\",\"blocks\":null}\n\n"),
    ])
    let pauses = Pauses()
    let events = await Self.read(try .scripted(transport, pauses: pauses))
    #expect(events == ["connected", "m1", "connected", "m2", "events", "loggedOut"])
    #expect(transport.requests.map { $0.headers["Last-Event-ID"] } == [nil, "1", "1", "2"])
    #expect(transport.requests.allSatisfy { $0.timeout == 60 && $0.accessToken == "access-1" })
    #expect(pauses.all == [1.5, 4, 3])
  }

  @Test func `an app that ends between two events resumes after the one that it has read`() async throws {
    let transport = Self.transport([Self.stream(Self.notification(1) + Self.notification(2))])
    var iterator = try MusterClient.scripted(transport).notifications.stream().makeAsyncIterator()
    var ids: [String?] = []
    for _ in 0..<3 {
      _ = try await iterator.next()
      ids.append(iterator.lastEventID)
    }
    #expect(ids == [nil, "1", "2"])
  }

  @Test func `events that this release does not know are skipped`() async throws {
    let transport = Self.transport([
      Self.stream(
        "event: other\ndata: {}\n\nevent: notification\ndata: {}\n\nevent: changed\ndata: 1\n\n" + Self.notification(3))
    ])
    #expect(await Self.read(try .scripted(transport), after: "0") == ["connected", "m3", "loggedOut"])
    #expect(transport.requests.first?.headers["Last-Event-ID"] == "0")
  }

  @Test func `an expired token is refreshed when the stream connects`() async throws {
    let transport = Self.transport([
      Self.refusal(.problem(.tokenExpired, status: 401)), Self.stream(Self.notification(1)),
    ])
    #expect(await Self.read(try .scripted(transport)) == ["connected", "m1", "loggedOut"])
    #expect(transport.requests.map(\.isRefresh) == [false, true, false, false])
    #expect(transport.requests[2].accessToken == "access-2")
  }

  @Test func `a busy service, a proxy and a login page are tried again, with growing waits`() async throws {
    let transport = Self.transport([
      Self.refusal(.problem(.tooManyStreams, status: 503, retryAfter: 7)),
      Self.refusal(.html(status: 502)),
      Self.stream("<html>", type: "text/html"),
      Self.stream(),
      Self.stream(Self.notification(1)),
    ])
    let pauses = Pauses()
    #expect(
      await Self.read(try .scripted(transport, pauses: pauses)) == ["connected", "m1", "loggedOut"])
    #expect(pauses.all == [14, 6, 10, 18, 3])
  }

  @Test func `a stream is connected when its first block is complete, not before`() async throws {
    let transport = Self.transport([
      Self.stream(": open\nretry: 1000\nid: 4\n", "dropped"), Self.stream(": open\nretry: 1000\nid: 6\n\n", ""),
      Self.stream("event: changed\ndata: {\"events\":\"s\"}\n\n", ""), Self.stream(Self.notification(8)),
    ])
    let pauses = Pauses()
    let client = try MusterClient.scripted(transport, pauses: pauses)
    var stream = client.notifications.stream(after: "3").makeAsyncIterator()
    var ids: [String?] = []
    var events: [StreamEvent] = []
    do {
      while let event = try await stream.next() {
        events.append(event)
        ids.append(stream.lastEventID)
      }
    } catch MusterError.loggedOut {}
    let changed: [StreamEvent] = [.connected, .changed([.events: "s"])]
    #expect(Array(events.prefix(4)) == [.connected] + changed + [.connected])
    // The place at which the stream begins counts, and a change moves nothing.
    #expect(ids == ["6", "6", "6", "6", "8"])
    #expect(transport.requests.map { $0.headers["Last-Event-ID"] } == ["3", "3", "6", "6", "8"])
  }

  @Test func `a wait that the service asks for is obeyed`() async throws {
    let transport = Self.transport([Self.stream("retry: 60000\n\n"), Self.stream(": open\n\n")])
    let pauses = Pauses()
    _ = await Self.read(try .scripted(transport, pauses: pauses))
    #expect(pauses.all == [90, 3])
  }

  @Test func `an id that the service refuses is given up`() async throws {
    let transport = Self.transport([Self.refusal(.problem(.invalidFields, status: 422)), Self.stream(": open\n\n")])
    _ = await Self.read(try .scripted(transport), after: "later")
    #expect(transport.requests.map { $0.headers["Last-Event-ID"] } == ["later", nil, nil])
  }

  @Test func `another user's login ends the stream`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let left = Locked([Self.stream(Self.notification(1)), Self.stream(Self.notification(2))])
    let transport = ScriptedTransport(
      { _ in try .tokens(9, user: .ben) }, streams: { _ in left.change { $0.removeFirst() } })
    let client = try MusterClient.scripted(transport, tokens: store)
    var stream = client.notifications.stream().makeAsyncIterator()
    #expect(try await stream.next() == .connected)
    _ = try await stream.next()
    #expect(stream.lastEventID == "1")
    _ = try await client.auth.logIn(as: "ben", password: "plans-with-friends")
    await #expect(throws: MusterError.loggedOut) { try await stream.next() }
    #expect(left.value.count == 1)
  }

  @Test(.timeLimit(.minutes(1))) func `cancelling ends the stream without an error`() async throws {
    let (chunks, continuation) = AsyncThrowingStream<Data, any Error>.makeStream()
    let transport = ScriptedTransport(streams: { _ in
      TransportStream(status: 200, headers: ["content-type": "text/event-stream"], chunks: chunks)
    })
    let client = try MusterClient.scripted(transport)
    let reading = Task { await Self.read(client) }
    continuation.yield(Data(Self.notification(1).utf8))
    while transport.requests.isEmpty { await Task.yield() }
    reading.cancel()
    let events = await reading.value
    #expect(["connected", "m1"].starts(with: events))
  }
}
