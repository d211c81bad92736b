import Postgres

/// The time of a collection's last change, to the microsecond, for clients to echo.
struct Stamp: JSONWritable {
  let time: Timestamp

  init(_ time: Timestamp) {
    self.time = time
  }

  var eTag: String { "\"\(time.microseconds)\"" }

  func write(to json: inout JSONWriter) {
    json.time(time, microseconds: true)
  }
}
