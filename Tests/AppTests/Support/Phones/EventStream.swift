import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// A reader of Server-Sent Events that follows the HTML standard and remembers the last event id.
final class EventStream: Sendable {
  struct Event: Sendable, Equatable {
    let id: String
    let name: String
    let data: String

    var json: JSON { (try? JSON(parsing: data.utf8)) ?? .null }
  }

  private struct State: Sendable {
    var response: APIResponse?
    var hasEnded = false
    var events: [Event] = []
    var changes: [JSON] = []
    var comments: [String] = []
    var retry: Int?
    var lastID = ""
    // The event that is being received.
    var line: [UInt8] = []
    var id: String?
    var name = ""
    var data: [String] = []
  }

  private let state = Mutex(State())

  /// The response without its body, or with it if the request was refused.
  var response: APIResponse? { state.withLock { $0.response } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }
  /// Without the events `changed`.
  var events: [Event] { state.withLock { $0.events } }
  /// The data of the events `changed`.
  var changes: [JSON] { state.withLock { $0.changes } }
  var comments: [String] { state.withLock { $0.comments } }
  /// In milliseconds.
  var retry: Int? { state.withLock { $0.retry } }
  /// The id to resume from.
  var lastID: String { state.withLock { $0.lastID } }

  /// The events so far, with the id to resume from.
  var progress: (events: [Event], lastID: String) { state.withLock { ($0.events, $0.lastID) } }

  /// Reads a user's stream. Runs `body` when the stream is open or was refused.
  ///
  /// - Parameters:
  ///   - app: the service to connect to. The phone's own if nil.
  ///   - lastID: the id to resume from.
  static func follow<Value: Sendable>(
    _ phone: Phone, at app: TestApp? = nil, after lastID: String? = nil, token: String? = nil,
    _ body: (EventStream) async throws -> Value
  ) async throws -> Value {
    let stream = EventStream()
    let client = HTTPClient(configuration: HTTPClient.Configuration())
    var request = HTTPClientRequest(url: "\((app ?? phone.app).url)/api/v1/notifications/stream")
    request.headers.add(name: "Authorization", value: "Bearer \(token ?? phone.accessToken)")
    if let lastID { request.headers.add(name: "Last-Event-ID", value: lastID) }
    let reading = Task { [request] in await stream.read(request, client) }
    func hangUp() async {
      reading.cancel()
      await reading.value
      try? await client.shutdown()
    }
    do {
      try await eventually { stream.hasEnded || !stream.comments.isEmpty }
      let value = try await body(stream)
      await hangUp()
      return value
    } catch {
      await hangUp()
      throw error
    }
  }

  private func read(_ request: HTTPClientRequest, _ client: HTTPClient) async {
    do {
      let response = try await client.execute(request, timeout: .seconds(30))
      let (status, headers) = (Int(response.status.code), response.headers.map { (name: $0.name, value: $0.value) })
      guard status == 200 else {
        let bytes = try await response.body.collect(upTo: 1 << 20)
        state.withLock {
          $0.response = APIResponse(status: status, headers: headers, body: String(buffer: bytes))
          $0.hasEnded = true
        }
        return
      }
      state.withLock { $0.response = APIResponse(status: status, headers: headers, body: "") }
      for try await bytes in response.body {
        state.withLock { state in for byte in bytes.readableBytesView { Self.take(byte, &state) } }
      }
    } catch {
      // The connection was closed by one side.
    }
    state.withLock { $0.hasEnded = true }
  }

  private static func take(_ byte: UInt8, _ state: inout State) {
    guard byte == UInt8(ascii: "\n") else {
      state.line.append(byte)
      return
    }
    let line = String(decoding: state.line, as: UTF8.self)
    state.line = []
    if line.isEmpty { return dispatch(&state) }
    let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let value = parts.count > 1 ? parts[1].hasPrefix(" ") ? String(parts[1].dropFirst()) : parts[1] : ""
    switch parts[0] {
    case "": state.comments.append(value)
    case "id": state.id = value
    case "event": state.name = value
    case "data": state.data.append(value)
    case "retry": state.retry = Int(value)
    default: break
    }
  }

  private static func dispatch(_ state: inout State) {
    if let id = state.id { state.lastID = id }
    if !state.data.isEmpty {
      let event = Event(id: state.lastID, name: state.name, data: state.data.joined(separator: "\n"))
      if event.name == "changed" { state.changes.append(event.json) } else { state.events.append(event) }
    }
    (state.name, state.data) = ("", [])
  }

  /// The complete events in the bytes that a connection received of a stream.
  static func events(in text: String) -> [Event] {
    var state = State()
    let lines = text.components(separatedBy: "\r\n")
    guard let head = lines.firstIndex(of: "") else { return [] }
    // A line with the length of the chunk precedes each chunk.
    for (index, chunk) in lines[(head + 1)...].enumerated() where !index.isMultiple(of: 2) {
      for byte in chunk.utf8 { take(byte, &state) }
    }
    return state.events
  }
}

extension TestApp {
  /// The stream ids and the ids of a user's notifications, in the order of the inbox.
  func inbox(of phone: Phone) async throws -> [(number: String, id: String)] {
    let rows = try await database.rows(
      "SELECT filed_at, id FROM notifications WHERE recipient_id = \(phone.userID) ORDER BY filed_at")
    return try rows.map { row in
      let (place, id): (Timestamp, UUID) = (try row["filed_at"], try row["id"])
      return (String(place.microseconds), id.uuidString.lowercased())
    }
  }

  /// Files notifications into an inbox with one statement, as fan-out does. Each is about 600 bytes long.
  func fileNotifications(_ count: Int, for phone: Phone) async throws {
    try await database.execute(
      """
      WITH stamped AS (
        UPDATE user_stamps
        SET notifications = greatest(clock_timestamp(), notifications + \(count) * interval '1 microsecond')
        WHERE user_id = \(phone.userID)
        RETURNING notifications AS stamp
      )
      INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, payload, created_at)
      SELECT \(phone.userID), stamp - (\(count) - place) * interval '1 microsecond', uuid_v7(), 'event-cancelled',
        uuid_v7(), jsonb_build_object('type', 'event-cancelled', 'title', place || repeat(' long', 100)), now()
      FROM stamped, generate_series(1, \(count)) AS place
      """)
  }
}
