/// One event of a stream of Server-Sent Events.
struct ServerSentEvent: Sendable, Hashable {
  /// The type; `message` if the stream names none.
  var event: String
  /// The lines of data, with line feeds between them.
  var data: String
  /// The last `id` of the stream so far.
  var id: String?
}
