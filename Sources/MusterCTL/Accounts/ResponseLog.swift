import Foundation
import MusterKit
import Synchronization

/// Remembers the service's responses, so that `--json` prints them unchanged, including members that this program
/// does not know.
final class ResponseLog: Transport {
  private let transport: any Transport
  private let last = Mutex<Data?>(nil)

  init(_ transport: any Transport) { self.transport = transport }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let response = try await transport.send(request)
    if (200..<300).contains(response.status) { last.withLock { $0 = response.body } }
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    try await transport.open(request)
  }

  /// Makes a call of the client.
  ///
  /// - Returns: what the client made of the response, and the response itself; `{}` if it had no body.
  func reply<Value>(to call: () async throws -> Value) async throws -> Reply<Value> {
    last.withLock { $0 = nil }
    let value = try await call()
    let body = last.withLock { $0 } ?? Data()
    let json = body.isEmpty ? .object([:]) : try JSONDecoder.muster().decode(JSONValue.self, from: body)
    return Reply(value: value, json: json)
  }

  /// Reads all pages of a list.
  ///
  /// - Parameter limit: the maximum number of items.
  /// - Returns: the items, and the list as one page.
  func pages<Item>(
    limit: Int = .max, _ page: (_ limit: Int, _ cursor: String?) async throws -> Page<Item>
  ) async throws -> Reply<[Item]> {
    var items: [Item] = []
    var objects: [JSONValue] = []
    var cursor: String?
    while true {
      let reply = try await reply { try await page(min(limit - items.count, 100), cursor) }
      items += reply.value.items
      guard case .object(var list) = reply.json else { return Reply(value: items, json: reply.json) }
      if case .array(let more) = list["items"] { objects += more }
      cursor = reply.value.nextCursor
      guard cursor == nil || items.count >= limit else { continue }
      list["items"] = .array(objects)
      return Reply(value: items, json: .object(list))
    }
  }
}

/// A response of the service: the value that the client decoded, and its JSON, with all members.
struct Reply<Value> {
  let value: Value
  let json: JSONValue
}

extension Reply<User> {
  /// The response to a login without its tokens.
  var user: Reply<User> { Reply(value: value, json: json["user"] ?? .null) }
}
