// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  // Not in an app's build, where a newer compiler may know more warnings.
  .treatAllWarnings(as: .error, .when(traits: ["Server"])),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// An async call runs on its caller's executor, which saves two hops between executors.
let nonsending: [SwiftSetting] = strict + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

/// A product that an app does not need. Its package is resolved only with the trait `Server`.
func server(_ product: String, _ package: String) -> Target.Dependency {
  .product(name: product, package: package, condition: .when(traits: ["Server"]))
}

let package = Package(
  name: "muster",
  platforms: [.macOS(.v15), .iOS(.v17)],
  products: [
    .executable(name: "muster", targets: ["muster"]),
    .executable(name: "musterctl", targets: ["musterctl"]),
    .library(name: "MusterKit", targets: ["MusterKit"]),
    .library(name: "Postgres", targets: ["Postgres"]),
  ],
  // Off by default: an app that adds MusterKit resolves no other package.
  traits: [.trait(name: "Server", description: "The service, its workers, musterctl and the tests.")],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
  ],
  targets: [
    .systemLibrary(
      name: "CLibpq", pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
      name: "CIDN2", pkgConfig: "libidn2",
      providers: [.apt(["libidn2-dev"]), .brew(["libidn2"])]),
    // First of all that needs the trait, so that a build without it fails with one message.
    .target(name: "ServerTrait", swiftSettings: strict),
    .target(name: "CContainment"),
    .target(
      name: "Postgres",
      dependencies: [
        "CLibpq", "ServerTrait",
        server("DequeModule", "swift-collections"),
        server("HeapModule", "swift-collections"),
        server("Logging", "swift-log"),
        server("Metrics", "swift-metrics"),
      ],
      exclude: ["README.md"],
      swiftSettings: nonsending),
    .target(
      name: "EmbeddedPostgres",
      dependencies: [
        "ServerTrait",
        server("Subprocess", "swift-subprocess"),
        server("SystemPackage", "swift-system"),
      ],
      swiftSettings: strict),
    .target(
      name: "HTTPServer",
      dependencies: [
        "CZlib", "ServerTrait",
        server("DequeModule", "swift-collections"),
        server("HTTPTypes", "swift-http-types"),
        server("Logging", "swift-log"),
        server("NIOCore", "swift-nio"),
        server("NIOExtras", "swift-nio-extras"),
        server("NIOHPACK", "swift-nio-http2"),
        server("NIOHTTP1", "swift-nio"),
        server("NIOHTTP2", "swift-nio-http2"),
        server("NIOHTTPTypes", "swift-nio-extras"),
        server("NIOHTTPTypesHTTP1", "swift-nio-extras"),
        server("NIOHTTPTypesHTTP2", "swift-nio-extras"),
        server("NIOPosix", "swift-nio"),
        server("NIOSSL", "swift-nio-ssl"),
        server("NIOTLS", "swift-nio"),
        server("ServiceLifecycle", "swift-service-lifecycle"),
      ],
      swiftSettings: nonsending),
    .target(
      name: "App",
      dependencies: [
        "CContainment", "CIDN2", "HTML", "HTTPServer", "Postgres",
        server("AsyncHTTPClient", "async-http-client"),
        server("NIOCore", "swift-nio"),
        server("NIOPosix", "swift-nio"),
        server("NIOHTTP1", "swift-nio"),
        server("NIOSSL", "swift-nio-ssl"),
        server("JWTKit", "jwt-kit"),
        server("Crypto", "swift-crypto"),
        server("CryptoExtras", "swift-crypto"),
        server("Logging", "swift-log"),
        server("Metrics", "swift-metrics"),
        server("ServiceLifecycle", "swift-service-lifecycle"),
        server("Subprocess", "swift-subprocess"),
        server("SystemPackage", "swift-system"),
        server("Mustache", "swift-mustache"),
      ],
      exclude: [
        "HTTP/openapi.yaml", "Authentication/Passwords/common-passwords.txt", "Web/docs.mustache", "Web/style.css",
        "Web/share.mustache", "Web/share-style.css",
      ],
      swiftSettings: nonsending,
      plugins: ["EmbedFiles"]),
    .target(
      name: "HTML", dependencies: ["ServerTrait", server("Mustache", "swift-mustache")], swiftSettings: strict),
    .plugin(
      name: "EmbedFiles", capability: .buildTool(),
      dependencies: ["embed-files", .target(name: "render-docs", condition: .when(traits: ["Server"]))]),
    .executableTarget(name: "embed-files", path: "Plugins/embed-files"),
    .executableTarget(
      name: "render-docs",
      dependencies: ["HTML", server("Mustache", "swift-mustache"), server("Yams", "Yams")],
      path: "Plugins/render-docs", swiftSettings: strict),
    .executableTarget(
      name: "generate", dependencies: ["ServerTrait", server("Yams", "Yams")], path: "Plugins/generate",
      swiftSettings: strict),
    .executableTarget(
      name: "muster",
      dependencies: [
        "App", "EmbeddedPostgres", "HTTPServer", "Postgres",
        server("ArgumentParser", "swift-argument-parser"),
        server("Logging", "swift-log"),
        server("ServiceLifecycle", "swift-service-lifecycle"),
        server("UnixSignals", "swift-service-lifecycle"),
      ],
      path: "Sources/CLI",
      swiftSettings: strict),
    .target(name: "MusterKit", swiftSettings: strict),
    .executableTarget(
      name: "musterctl",
      dependencies: ["MusterKit", "ServerTrait", server("ArgumentParser", "swift-argument-parser")],
      path: "Sources/MusterCTL",
      swiftSettings: strict),
    .target(
      name: "PlansAppModels", dependencies: ["MusterKit"], path: "Examples/PlansApp/Models", swiftSettings: strict),
    .executableTarget(
      name: "first-program", dependencies: ["MusterKit"], path: "Examples/FirstProgram", swiftSettings: strict),
    .executableTarget(
      name: "postgres-benchmark", dependencies: ["Postgres"], path: "Benchmarks/Client", swiftSettings: strict),
    .executableTarget(
      name: "store-benchmark", dependencies: ["MusterKit"], path: "Benchmarks/Store", swiftSettings: strict),
    .target(
      name: "TestSupport",
      dependencies: [
        "EmbeddedPostgres", "Postgres",
        server("Subprocess", "swift-subprocess"),
        server("SystemPackage", "swift-system"),
      ],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(name: "PostgresTests", dependencies: ["Postgres", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "HTTPServerTests",
      dependencies: [
        "HTTPServer",
        server("Logging", "swift-log"),
        server("NIOCore", "swift-nio"),
        server("NIOEmbedded", "swift-nio"),
        server("NIOHTTP1", "swift-nio"),
        server("NIOHTTPTypes", "swift-nio-extras"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "AppTests",
      dependencies: [
        "App", "EmbeddedPostgres", "HTML", "HTTPServer", "Postgres", "TestSupport", "generate", "render-docs",
        server("AsyncHTTPClient", "async-http-client"),
        server("Crypto", "swift-crypto"),
        server("CryptoExtras", "swift-crypto"),
        server("JWTKit", "jwt-kit"),
        server("Logging", "swift-log"),
        server("Metrics", "swift-metrics"),
        server("NIOCore", "swift-nio"),
        server("NIOHTTP1", "swift-nio"),
        server("NIOHPACK", "swift-nio-http2"),
        server("NIOHTTP2", "swift-nio-http2"),
        server("NIOPosix", "swift-nio"),
        server("NIOSSL", "swift-nio-ssl"),
        server("NIOTLS", "swift-nio"),
        server("ServiceLifecycle", "swift-service-lifecycle"),
        server("Yams", "Yams"),
      ],
      exclude: ["HTTP/operations.txt", "HTTP/wrong-bodies.txt", "Support/Pictures/Files"],
      swiftSettings: strict),
    .testTarget(
      name: "MusterCTLTests",
      dependencies: [
        "MusterKit", "Postgres", "TestSupport", "musterctl",
        server("ArgumentParser", "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(name: "AgreementTests", dependencies: ["App", "MusterKit"], swiftSettings: strict),
    .executableTarget(
      name: "test-client", dependencies: ["MusterKit"], path: "Tests/TestClient", swiftSettings: strict),
    .testTarget(
      name: "MusterKitTests",
      dependencies: [
        "EmbeddedPostgres", "MusterKit", "PlansAppModels", "Postgres", "TestSupport",
        server("Yams", "Yams"),
        server("NIOCore", "swift-nio"),
        server("NIOPosix", "swift-nio"),
        server("Subprocess", "swift-subprocess"),
        server("SystemPackage", "swift-system"),
      ],
      swiftSettings: strict),
  ]
)
