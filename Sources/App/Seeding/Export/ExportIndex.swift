import HTTPTypes
import Postgres

/// The contents of an export:
/// `{"baseUrl", "time", "user", "calls": [{"method", "path", "status", "file", "etag"?, "body"?}]}`. `time` is the time
/// by the service's clock, `user` the id of the user who called, `path` has the query, and `body` is the request's.
struct ExportIndex: JSONWritable {
  struct Entry: Sendable {
    let call: ExportedCall
    let eTag: String?
  }

  let baseURL: String
  let time: Timestamp
  let user: User.ID
  var entries: [Entry] = []

  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("baseUrl", baseURL)
      $0.member("time", time)
      $0.member("user", user)
      $0.member("calls", entries)
    }
  }
}

extension ExportIndex.Entry: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("method", call.method.rawValue)
      $0.member("path", call.path)
      $0.member("status", call.status)
      $0.member("file", call.file)
      if let eTag { $0.member("etag", eTag) }
      if let body = call.shownBody { $0.member("body") { $0.raw(body) } }
    }
  }
}
