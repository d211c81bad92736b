import Foundation
import HTTPServer
import Postgres
import Testing
import TestSupport

@testable import App

@Suite struct PictureTests {
  @Test(arguments: ["a PNG", "a JPEG", "a WebP", "a HEIC"])
  func `a picture is served as a JPEG, whatever it was, and whatever its Content-Type was`(_ what: String) async throws
  {
    let files: [String: [UInt8]] = [
      "a PNG": Sample.png(), "a JPEG": Sample.jpeg(), "a WebP": Sample.ascii(Sample.webpText),
      "a HEIC": PictureDecoder.sample,
    ]
    let file = try #require(files[what])
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let profile = try await ana.putPicture(file, type: "text/html")
      let url = try #require(profile.json["pictureUrl"].string)
      #expect(url.hasPrefix("\(app.url)/pictures/"))
      // From now on, this is the stamp of the profile.
      let me = try await ana.get("users/me")
      #expect(me == profile.json)

      let response = try await app.fetch(url)
      #expect(response.status == 200)
      #expect(PictureFormat(of: response.bytes) == .jpeg)
      #expect(response.header("Content-Type") == "image/jpeg")
      #expect(response.header("Cache-Control") == "public, max-age=31536000, immutable")
      #expect(response.header("X-Content-Type-Options") == "nosniff")
      #expect(response.header("Content-Security-Policy") == "default-src 'none'; sandbox")
      let head = try await app.fetch(url, method: "HEAD")
      #expect(head.status == 200)
      #expect(head.bytes.isEmpty)
      for name in ["Content-Type", "Content-Length", "Cache-Control", "ETag", "X-Content-Type-Options"] {
        #expect(head.header(name) == response.header(name), "\(name)")
      }
      let tag = try #require(response.header("ETag"))
      let again = try await app.fetch(url, headers: [("If-None-Match", tag)])
      #expect(again.status == 304)
      #expect(again.header("ETag") == tag)
      #expect(again.header("Cache-Control") == response.header("Cache-Control"))
    }
  }

  @Test func `nothing of the original is kept but its digest`() async throws {
    let tiff = Sample.tiff(orientation: 6)
    let exif = Sample.join(Sample.ascii("Exif\0\0"), tiff)
    let jpeg = Sample.jpeg(
      width: 16, height: 8,
      metadata: Sample.join(
        Sample.segment(0xe1, exif),
        Sample.segment(0xe1, Sample.join(Sample.ascii("http://ns.adobe.com/xap/1.0/\0"), Sample.secret)),
        Sample.segment(0xed, Sample.join(Sample.ascii("Photoshop 3.0\0"), Sample.secret)),
        Sample.segment(0xe2, Sample.join(Sample.ascii("MPF\0"), Sample.secret)), Sample.segment(0xfe, Sample.secret)))
    let texts = Sample.join(
      Sample.chunk("tEXt", Sample.join(Sample.ascii("Comment\0"), Sample.secret)), Sample.chunk("eXIf", tiff))
    let webp = Sample.webp(
      [Sample.riff("VP8L", Sample.onePixel), Sample.riff("EXIF", tiff), Sample.riff("XMP ", Sample.secret)],
      width: 1, height: 1)
    let files = [
      Sample.join(jpeg, jpeg, Sample.secret), Sample.join(Sample.png(metadata: texts), Sample.secret), webp,
      Sample.join(PictureDecoder.sample, Sample.box("uuid", Sample.secret)),
    ]
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for (number, file) in files.enumerated() {
        #expect(file.firstRange(of: Sample.secret) != nil)
        let url = try await ana.show(file)
        for query in ["", "?size=192", "?size=768", "?size=2048"] {
          let response = try await app.fetch(url + query)
          #expect(response.status == 200 && PictureFormat(of: response.bytes) == .jpeg, "\(number)")
          for text in [Sample.secret, Sample.ascii("Exif"), Sample.ascii("ICC_PROFILE")] {
            #expect(response.bytes.firstRange(of: text) == nil, "\(number)")
          }
        }
      }
      _ = try await ben.report(ana, reason: "nudity")
      let row: String? = try await app.value("SELECT p::text || r::text FROM pictures AS p, reports AS r")
      let secret = Sample.secret.map { String($0, radix: 16) }.joined()
      #expect(row.map { !$0.contains(secret) } == true)
    }
  }

  @Test func `a HEAD, and a GET with a matching ETag, read none of a picture's bytes`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      // Stored in three parts.
      let url = try await ana.show(try Noise.png(640))
      let tag = try #require(try await app.fetch(url).header("ETag"))
      let calls: [(method: String, headers: [(String, String)], status: Int)] = [
        ("HEAD", [], 200), ("GET", [("If-None-Match", tag)], 304), ("GET", [("If-None-Match", "*")], 304),
      ]
      for (method, headers, status) in calls {
        let statements = try await log.statements {
          let response = try await app.fetch(url, method: method, headers: headers)
          #expect(response.status == status && response.header("ETag") == tag)
        }
        #expect(statements.count == 1 && !statements[0].contains("substring"), "\(statements)")
      }
      let statements = try await log.statements { _ = try await app.fetch(url) }
      #expect(statements.count == 3 && statements.allSatisfy { $0.contains("substring") }, "\(statements)")
    }
  }

  @Test func `a picture of 2 MiB is accepted, and one byte more is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let largest = Sample.png(length: 2 << 20)
      #expect(largest.count == 2 << 20)
      let url = try await ana.show(largest)
      let response = try await app.fetch(url)
      #expect(response.header("Content-Length") == "\(response.bytes.count)")
      #expect(response.bytes.suffix(2) == [0xff, 0xd9])
      let refused = try await ana.putPicture(largest + [0], expecting: 413)
      #expect(refused.problem == "body-too-large")
      let me = try await ana.get("users/me")
      #expect(me["pictureUrl"].string == url)
    }
  }

  @Test func `a picture that is too large is refused before it is read, with or without a length`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let head = """
        PUT /api/v1/users/me/picture HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(ana.accessToken)\r\n
        """
      let announced = try await RawConnection(to: app)
      try await announced.send(head + "Content-Length: 2097153\r\n\r\n")
      let first = try await announced.response()
      #expect(first.status == 413 && first.problem == "body-too-large")
      let chunked = try await RawConnection(to: app)
      try await chunked.send(head + "Transfer-Encoding: chunked\r\n\r\n")
      async let sent = chunked.send("10000\r\n" + String(repeating: "x", count: 65_536) + "\r\n", times: 40)
      let second = try await chunked.response()
      #expect(second.status == 413 && second.problem == "body-too-large")
      _ = try? await sent
      let stored: Int? = try await app.value("SELECT count(*) FROM pictures")
      #expect(stored == 0)
    }
  }

  @Test func `a picture that arrives too slowly is cut off`() async throws {
    try await TestApp.run(limits: .with { $0.connections.bodyGrace = 1 }) { app in
      let ana = try await app.signUp("ana")
      let connection = try await RawConnection(to: app)
      try await connection.send(
        """
        PUT /api/v1/users/me/picture HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(ana.accessToken)\r
        Content-Length: 2000000\r\n\r\n
        """)
      async let sent = connection.send("x", times: 400, pause: 0.05)
      let text = try await connection.rest(within: 15)
      #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(text)")
      let count = try await sent
      #expect(count < 400)
    }
  }

  private static let notPictures: [(what: String, bytes: [UInt8])] = [
    ("nothing", []), ("text", Sample.ascii("ana.png")),
    ("HTML", Sample.ascii("<!DOCTYPE html><script>alert(1)</script>")),
    ("SVG", Sample.ascii(#"<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>"#)),
    ("HTML before a picture", Sample.join(Sample.ascii("<html>"), Sample.png())),
    ("GIF", Sample.ascii("GIF89a\u{1}\0\u{1}\0\0\0\0;")),
    ("a signature alone", Array(Sample.png().prefix(8))),
    ("a PNG cut in its header", Array(Sample.png().prefix(28))),
    ("a PNG without width", Sample.png(width: 0)),
    ("a huge PNG", Sample.png(width: 16_384, height: 16_384)),
    ("a PNG of the largest size", Sample.png(width: .max, height: .max)),
    ("a PNG that is too wide", Sample.png(width: 4097)), ("a PNG that is too high", Sample.png(height: 4097)),
    ("a PNG without its last pixel", Array(Sample.png(width: 9, height: 9).dropLast(24))),
    ("a JPEG that is too wide", Sample.jpeg(width: 4097)),
    ("a JPEG without its last pixels", Array(Sample.jpeg(width: 512, height: 512).dropLast(400))),
    ("a WebP that is too wide", Sample.webp([Sample.riff("VP8L", Sample.losslessPixels)], width: 4097)),
    (
      "a WebP whose pixels are larger than the picture",
      Sample.webp([Sample.riff("VP8L", [0x2f, 0x3f, 0, 0, 0])], width: 63)
    ),
    (
      "a WebP with a frame that is larger than the picture",
      Sample.webp(
        [
          Sample.riff("ANMF", Array(repeating: 0, count: 16) + Sample.riff("VP8L", [0x2f, 0x3f, 0, 0, 0]))
        ], width: 63)
    ), ("a WebP without pixels", Sample.webp([])), ("a WebP without its end", Array(Sample.extendedWebP.dropLast(2))),
    ("a HEIC that is too high", Sample.heic(height: 4097)), ("a HEIC without its end", Array(Sample.heic().dropLast())),
    ("a JPEG cut", Array(Sample.jpeg().prefix(20))),
    ("a JPEG without height", Sample.jpeg(height: 0)),
    ("a huge JPEG", Sample.jpeg(width: 65_535, height: 65_535)),
    ("a JPEG without a frame", [0xff, 0xd8, 0xff, 0xe0, 0, 2, 0xff, 0xd9]),
    ("a JPEG whose segments have no end", [0xff, 0xd8, 0xff, 0xe0, 0, 0, 0xff, 0xe0, 0, 0]),
    ("HTML after a JPEG's first bytes", Sample.join([0xff, 0xd8, 0xff], Sample.ascii("<html><script>"))),
    ("a WAV", Sample.ascii("RIFF\u{12}\0\0\0WAVEfmt \u{5}\0\0\0/\0\0\0\0\0")),
    ("a WebP cut", Array(Sample.webpText.utf8.prefix(22))),
    ("a film", Sample.heic(brands: ["mp42", "isom", "mp42"])),
    ("an AVIF", Sample.heic(brands: ["avif", "mif1", "avif"])),
    ("a HEIC of the largest size", Sample.heic(width: .max, height: .max)),
    ("a HEIC that is empty", Sample.join(Sample.box("ftyp", Sample.ascii("heic\0\0\0\0heic")), Sample.box("meta", []))),
    ("a box of no size", Sample.ascii("\0\0\0\0ftyp")),
    ("a box that is far too long", Sample.join([255, 255, 255, 255], Sample.ascii("ftyp"))),
    (
      "a box of a negative size",
      Sample.join([0, 0, 0, 1], Sample.ascii("ftyp"), [255, 255, 255, 255, 255, 255, 255, 255])
    ),
  ]

  @Test func `a body that is not a picture is refused, whatever its type`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (what, bytes) in Self.notPictures {
        for type in ["image/png", "image/jpeg", "image/heic"] {
          let response = try await ana.putPicture(bytes, type: type, expecting: 415)
          #expect(response.problem == "unsupported-media-type", "\(what)")
        }
      }
      let me = try await ana.get("users/me")
      #expect(me["pictureUrl"] == .null)
    }
  }

  @Test func `a picture that has all of its pixels is accepted, whatever it lacks`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for file in [Sample.png().dropLast(12), Sample.png().dropLast(), Sample.jpeg().dropLast(2)] {
        _ = try await ana.show(Array(file))
      }
    }
  }

  @Test func `the formats are recognized by their first bytes`() {
    for bytes in [Sample.ascii(Sample.webpText), Sample.lossyWebP, Sample.extendedWebP] {
      #expect(PictureFormat(of: bytes) == .webp)
    }
    for brands in [["heic", "mif1"], ["mif1", "mif1", "heic"], ["heix"], ["mif1", "heim"], ["heis"]] {
      #expect(PictureFormat(of: Sample.heic(brands: brands)) == .heic, "\(brands)")
    }
    #expect(PictureFormat(of: Sample.png()) == .png && PictureFormat(of: Sample.jpeg()) == .jpeg)
    for file in [Sample.png(), Sample.jpeg(), Sample.heic(), Sample.lossyWebP] {
      for length in 0..<3 { #expect(PictureFormat(of: Array(file.prefix(length))) == nil) }
    }
  }

  @Test func `a file that is also something else is served only as a picture`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let script = "*/=1;alert(1)/*<script>alert(1)</script>"
      for file in [
        Sample.jpeg(metadata: Sample.segment(0xfe, Sample.ascii(script))),
        Sample.join(Sample.png(), Sample.ascii(script)),
      ] {
        let url = try await ana.show(file)
        let response = try await app.fetch(url, headers: [("Accept", "text/html")])
        #expect(response.header("Content-Type") == "image/jpeg")
        #expect(response.header("X-Content-Type-Options") == "nosniff")
        #expect(response.bytes.firstRange(of: Sample.ascii("alert")) == nil)
      }
    }
  }

  @Test func `a picture that is based on an older profile replaces nothing newer`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func stamp() async throws -> String { "\"\(try await ana.get("users/me")["timestamp"].string ?? "")\"" }
      func put(_ bytes: String, _ ifMatch: String) async throws -> APIResponse {
        try await ana.send("PUT", "users/me/picture", bytes, headers: [("If-Match", ifMatch)])
      }
      func remove(_ ifMatch: String) async throws -> APIResponse {
        try await ana.send("DELETE", "users/me/picture", headers: [("If-Match", ifMatch)])
      }
      let before = try await stamp()
      let first = try await put(Sample.webpText, before)
      #expect(first.status == 200)
      // The same picture again, however old the request is.
      let again = try await put(Sample.webpText, before)
      #expect(again.status == 200 && again.json["pictureUrl"] == first.json["pictureUrl"])
      let between = try await stamp()
      let newer = try await ana.show(Sample.png(1))
      for old in [before, between] {
        let refused = try await put(Sample.webpText, old)
        #expect(refused.status == 412 && refused.problem == "lost-update")
        #expect(try await remove(old).problem == "lost-update")
      }
      #expect(try await ana.get("users/me")["pictureUrl"].string == newer)
      #expect(try await remove(try await stamp()).status == 204)
      // It is gone already.
      #expect(try await remove(before).status == 204)
      #expect(try await put(Sample.webpText, "*").status == 200)
    }
  }

  @Test func `the URL of a picture that was replaced, removed or erased gets 404`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var urls: [String] = []
      for number in 0..<3 {
        let url = try await ana.show(Sample.png(number))
        for old in urls {
          for query in ["", "?size=192", "?size=768", "?size=2048"] {
            let response = try await app.fetch(old + query)
            #expect(response.status == 404)
            #expect(response.header("Cache-Control") == nil)
          }
        }
        urls.append(url)
      }
      #expect(Set(urls).count == 3)
      try await ana.removePicture()
      try await ana.removePicture()
      let me = try await ana.get("users/me")
      #expect(me["pictureUrl"] == .null)
      urls.append(try await ana.show(Sample.png(2)))
      // After a removal, the same bytes get another URL.
      #expect(Set(urls).count == 4)
      let export = try await ana.get("users/me/export")
      #expect(export["pictures"].array.count == 1)
      let bytes = export["pictures"][0]["jpeg2048"].string.flatMap { Data(base64Encoded: $0) }
      let shown = try await app.fetch(try #require(urls.last))
      #expect(bytes.map { Array($0) } == shown.bytes)
      try await ana.deleteAccount()
      for url in urls {
        let response = try await app.fetch(url)
        #expect(response.status == 404)
      }
      let left: Int? = try await app.value("SELECT count(*) FROM pictures")
      #expect(left == 0)
    }
  }

  @Test func `a made-up URL gets 404, and reveals nothing`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let url = try await ana.show(Sample.png())
      let key = String(url.suffix(24))
      for made in [
        "x", ana.id, "ana.png", "%00", "%2e%2e", "%ff", key + "x", String(key.dropLast()), String(key.reversed()),
        String(repeating: "A", count: 24), String(repeating: "%00", count: 24), String(repeating: "a", count: 4000),
      ] {
        let response = try await app.sendRaw("GET", "/pictures/\(made)")
        #expect(response.status == 404, "\(made.prefix(40))")
        #expect(response.problem == "picture-not-found", "\(made.prefix(40))")
      }
    }
  }

  @Test func `the URL begins with the configured public URL`() async throws {
    for (configured, base) in [
      ("https://api.example.com", "https://api.example.com"),
      ("https://example.com/muster/", "https://example.com/muster"),
    ] {
      try await TestApp.run(["MUSTER_PUBLIC_URL": configured]) { app in
        let ana = try await app.signUp("ana")
        let url = try await ana.show(Sample.png())
        #expect(url.hasPrefix("\(base)/pictures/"))
        let login = try await app.send(
          "POST", "auth/login", body: #"{"login": "ana", "password": "\#(ana.password)"}"#, headers: [("Host", "evil")])
        #expect(login.json["user"]["pictureUrl"].string == url)
      }
    }
    for wrong in ["example.com", "ftp://example.com", "https://", "https://a.example/?x=1", "https://a b.example"] {
      await #expect(throws: MusterConfiguration.Problem.self, "\(wrong)") {
        _ = try await MusterConfiguration.load(
          environment: Muster.environment("postgresql://localhost/muster").merging(["MUSTER_PUBLIC_URL": wrong]) {
            $1
          }, file: nil)
      }
    }
  }

  @Test func `the default public URL is the address that the service listens on`() {
    for (host, url) in [
      ("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://localhost:80"), ("::", "http://localhost:80"),
      ("::1", "http://[::1]:80"),
    ] {
      let publicURL = PublicURL(nil)
      publicURL.listens(on: host, port: 80)
      #expect(publicURL.text == url)
    }
  }
}
