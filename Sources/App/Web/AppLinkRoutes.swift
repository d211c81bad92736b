import HTTPServer

/// The files in `/.well-known/`.
struct AppLinkRoutes {
  let dependencies: Dependencies

  @Sendable func apple(_ request: Request, _ context: Context) async throws -> Response {
    let ids = dependencies.appLinks.appleAppIDs
    guard !ids.isEmpty else { throw AppError.appLinksNotConfigured }
    return file(AppleFile(appIDs: ids))
  }

  @Sendable func android(_ request: Request, _ context: Context) async throws -> Response {
    let links = dependencies.appLinks
    guard let package = links.androidPackage else { throw AppError.appLinksNotConfigured }
    return file([AndroidStatement(package: package, fingerprints: links.androidFingerprints)])
  }

  /// Without a charset: some crawlers compare the type as a whole.
  private func file(_ json: some JSONWritable) -> Response {
    var response = Response.json(json)
    response.headers[.contentType] = "application/json"
    response.headers[.cacheControl] = "public, max-age=3600"
    return response
  }
}

private struct AppleFile: JSONWritable {
  let appIDs: [String]

  func write(to json: inout JSONWriter) {
    json.appleAppLinks(applinks: Details(appIDs: appIDs))
  }

  private struct Details: JSONWritable {
    let appIDs: [String]

    func write(to json: inout JSONWriter) {
      json.appleAppLinkDetails(details: [Detail(appIDs: appIDs)])
    }
  }

  private struct Detail: JSONWritable {
    let appIDs: [String]

    func write(to json: inout JSONWriter) {
      json.appleAppLinkDetail(appIDs: appIDs, components: [Component()])
    }
  }

  private struct Component: JSONWritable {
    func write(to json: inout JSONWriter) {
      json.object { $0.member("/", "/e/*") }
    }
  }
}

private struct AndroidStatement: JSONWritable {
  let package: String
  let fingerprints: [String]

  func write(to json: inout JSONWriter) {
    json.androidAppLink(
      relation: ["delegate_permission/common.handle_all_urls"],
      target: Target(package: package, fingerprints: fingerprints))
  }

  private struct Target: JSONWritable {
    let package: String
    let fingerprints: [String]

    func write(to json: inout JSONWriter) {
      json.androidApp(namespace: "android_app", packageName: package, sha256CertFingerprints: fingerprints)
    }
  }
}

extension AppError {
  static let appLinksNotConfigured = AppError(
    .notFound, "app-links-not-configured", "No app for this platform is configured to open links.")
}

/// The apps that open share links. Files in `/.well-known/` name them to iOS and Android.
public struct AppLinks: Sendable {
  /// Like `ABCDE12345.com.example.app`. Empty: no iOS app opens links.
  var appleAppIDs: [String] = []
  /// Nil: no Android app opens links.
  var androidPackage: String?
  /// SHA-256 fingerprints of the certificates that sign the Android app.
  var androidFingerprints: [String] = []

  /// - Returns: nil for a malformed list.
  static func appleAppIDs(_ text: String) -> [String]? {
    list(text) { $0.wholeMatch(of: /[A-Z0-9]{10}\.[A-Za-z0-9.-]+/) != nil }
  }

  static func androidPackage(_ text: String) -> String? {
    text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+/) == nil ? nil : text
  }

  /// - Returns: nil for a malformed list.
  static func fingerprints(_ text: String) -> [String]? {
    list(text) { $0.wholeMatch(of: /([0-9A-F]{2}:){31}[0-9A-F]{2}/) != nil }
  }

  private static func list(_ text: String, _ isValid: (String) -> Bool) -> [String]? {
    let words = text.split(separator: ",").map { $0.split(separator: " ").joined(separator: " ") }
    return !words.isEmpty && words.allSatisfy(isValid) ? words : nil
  }
}
