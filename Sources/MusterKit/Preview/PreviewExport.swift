import Foundation

/// The demo as `muster seed export` wrote it: the responses of the API, and an index.
struct PreviewExport: Sendable {
  struct Call: Decodable, Sendable {
    let method: String
    /// With its query.
    let path: String
    let status: Int
    let file: String

    /// Nil for a picture, and for a call with a wrong path.
    var route: Route? {
      guard path.hasPrefix(Route.prefix) else { return nil }
      return try? Route(method: method, path: String(path.dropFirst(Route.prefix.count).prefix { $0 != "?" }))
    }

    /// Nil for a picture.
    var mediaType: String? {
      if file.hasSuffix(".json") { return status < 400 ? "application/json" : "application/problem+json" }
      return file.hasSuffix(".ics") ? "text/calendar" : nil
    }
  }

  private struct Index: Decodable {
    let baseUrl: URL
    let time: Date
    let user: User.ID
    let calls: [Call]
  }

  let baseURL: URL
  /// The time at which the responses were made.
  let time: Date
  /// The user who called.
  let user: User.ID
  let calls: [Call]
  /// The rules of requests.
  let rules: PreviewRules
  private let folder: URL
  /// Files of the folder, by the URLs of pictures.
  private let pictures: [String: String]

  /// - Throws: an error of Foundation if the folder has no export.
  init(folder: URL) throws {
    self.folder = folder
    let bytes = try Data(contentsOf: folder.appendingPathComponent("index.json"))
    let index = try JSONDecoder.muster().decode(Index.self, from: bytes)
    rules = try JSONDecoder().decode(
      PreviewRules.self, from: Data(contentsOf: folder.appendingPathComponent("rules.json")))
    (baseURL, time, user, calls) = (index.baseUrl, index.time, index.user, index.calls)
    let shown = index.calls.filter { $0.path.hasPrefix("/pictures/") && !$0.path.contains("?") }
    pictures = Dictionary(
      shown.map { (index.baseUrl.absoluteString + $0.path, folder.appendingPathComponent($0.file).absoluteString) }
    ) { first, _ in first }
  }

  /// The exported call of a method and a path, which includes the query.
  func call(_ method: String, _ path: String) -> Call? {
    calls.first { $0.method == method && $0.path == path }
  }

  /// The body of a response. The URLs of pictures in it are those of the files, which image views can load.
  func body(of call: Call) throws -> Data {
    let bytes = try Data(contentsOf: folder.appendingPathComponent(call.file))
    guard call.file.hasSuffix(".json") else { return bytes }
    var text = String(decoding: bytes, as: UTF8.self)
    for (url, file) in pictures { text = text.replacingOccurrences(of: "\"\(url)\"", with: "\"\(file)\"") }
    return Data(text.utf8)
  }

  /// Reads the response to a GET.
  ///
  /// - Parameter query: without the question mark.
  /// - Throws: an error of Foundation if the export has no such call.
  func read<Value: Decodable>(_ route: Route, _ query: String? = nil) throws -> Value {
    let path = Route.prefix + route.path + (query.map { "?" + $0 } ?? "")
    guard let call = call(route.method, path) else {
      throw CocoaError(.fileReadNoSuchFile, userInfo: [NSFilePathErrorKey: "\(route.method) \(path)"])
    }
    return try JSONDecoder.muster().decode(Value.self, from: body(of: call))
  }
}
