import MusterKit

/// A collection as the server sends it.
struct ServerCopy: Sendable {
  let stamp: Stamp
  /// The items as JSON, in their order.
  let items: [String]
}
