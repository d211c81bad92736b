import Testing

@testable import App

/// The files by which iOS and Android learn which app opens share links.
@Suite struct AppLinksTests {
  private static let fingerprint = Array(repeating: "A1", count: 32).joined(separator: ":")

  @Test func `both files name the configured apps, without a redirect or a charset`() async throws {
    let environment = [
      "MUSTER_APPLE_APP_IDS": "ABCDE12345.com.example.app, FGHIJ67890.com.example.beta",
      "MUSTER_ANDROID_PACKAGE": "com.example.app", "MUSTER_ANDROID_FINGERPRINTS": Self.fingerprint,
    ]
    try await TestApp.run(environment) { app in
      let apple = try await app.send("GET", "/.well-known/apple-app-site-association")
      #expect(apple.status == 200 && apple.header("Content-Type") == "application/json")
      let detail = apple.json["applinks"]["details"][0]
      #expect(
        detail["appIDs"].array.map(\.string) == ["ABCDE12345.com.example.app", "FGHIJ67890.com.example.beta"])
      #expect(detail["components"][0]["/"].string == "/e/*")
      let android = try await app.send("GET", "/.well-known/assetlinks.json")
      #expect(android.status == 200 && android.header("Content-Type") == "application/json")
      #expect(android.json[0]["target"]["package_name"].string == "com.example.app")
      #expect(android.json[0]["target"]["sha256_cert_fingerprints"][0].string == Self.fingerprint)
    }
  }

  @Test func `malformed values are refused`() {
    #expect(AppLinks.appleAppIDs("com.example.app") == nil && AppLinks.appleAppIDs(",") == nil)
    #expect(AppLinks.androidPackage("example") == nil)
    #expect(AppLinks.fingerprints("a1:b2") == nil && AppLinks.fingerprints(Self.fingerprint) != nil)
  }
}
