import Foundation
import HTTPTypes

/// A request of the export. Its response becomes a file.
struct ExportedCall: Sendable {
  let method: HTTPRequest.Method
  /// With its query.
  let path: String
  /// JSON.
  var body: String?
  /// The expected status.
  var status = 200
  /// Nil for a name made from the method and the path.
  var name: String?

  static func get(_ path: String, status: Int = 200, name: String? = nil) -> ExportedCall {
    ExportedCall(method: .get, path: path, status: status, name: name)
  }

  /// The name of the file. Of an id, it has the last twelve digits, which distinguish the demo's ids of one kind:
  /// `put-events-000000000005-invitations-me.json`.
  var file: String {
    if let name { return name }
    let words = path.replacing("/api/v1/", with: "").replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-/, with: "")
      .replacing(/[^0-9A-Za-z.]+/, with: "-")
    return "\(method.rawValue.lowercased())-\(words)\(words.hasSuffix(".ics") ? "" : ".json")"
  }

  /// Bodies with passwords are not in the index.
  var shownBody: String? { path.hasPrefix("/api/v1/auth/") ? nil : body }
}
