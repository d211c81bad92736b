import NIOHTTP1

/// A response of the service, in bytes.
struct BinaryResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let bytes: [UInt8]

  func header(_ name: String) -> String? { headers.first(name: name) }
}
