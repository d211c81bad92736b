import Foundation
import TestSupport
import Testing

/// The code for Apple's systems, against hand-written declarations of Apple's frameworks: `Tests/AppleStubs`. A view that
/// no longer fits its model fails here. Whether the views fit Apple's frameworks, only a Mac can say.
@Suite struct ViewTypeTests {
  private static let module = "AppleStubs"
  private static let frameworks = [
    "SwiftUI", "UIKit", "UserNotifications", "AuthenticationServices", "WidgetKit", "AppIntents", "BackgroundTasks",
    "Security",
  ]

  private func files(in folder: String) throws -> [URL] {
    let url = Program.checkout.appending(path: folder)
    return try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "swift" }
  }

  /// - Returns: the errors; nil if there are none.
  private func compile(_ arguments: [String], _ files: [URL]) async throws -> String? {
    // MusterKit, as these tests have built it.
    let built = URL(filePath: Program.path("muster")).deletingLastPathComponent().appending(path: "Modules")
    let all = [
      "swiftc", "-swift-version", "6", "-parse-as-library", "-enable-upcoming-feature", "ExistentialAny",
      "-enable-upcoming-feature", "MemberImportVisibility", "-I", built.path,
    ]
    let compiler = try await Program("/usr/bin/env", all + arguments + files.map(\.path))
    return try await compiler.exitStatus(within: .seconds(300)) == 0 ? nil : compiler.standardError
  }

  /// Makes the modules of the frameworks: each has all declarations.
  private func makeFrameworks(in folder: URL) async throws {
    let stubs = ["SwiftUI.swift", "Frameworks.swift"].map {
      Program.checkout.appending(path: "Tests/AppleStubs/\($0)")
    }
    func make(_ name: String, _ files: [URL]) async throws {
      let output = folder.appending(path: "\(name).swiftmodule").path
      let errors = try await compile(
        ["-emit-module", "-module-name", name, "-I", folder.path, "-o", output], files)
      try #require(errors == nil, "\(errors ?? "")")
    }
    try await make(Self.module, stubs)
    for name in Self.frameworks {
      let file = folder.appending(path: "\(name).swift")
      try Data("@_exported import \(Self.module)\n".utf8).write(to: file)
      try await make(name, [file])
    }
  }

  /// A copy of a file with other text.
  private func copy(_ file: URL, to folder: URL, _ change: (String) -> String) throws -> URL {
    let copy = folder.appending(path: "copy-\(file.lastPathComponent)")
    try Data(change(String(contentsOf: file, encoding: .utf8)).utf8).write(to: copy)
    return copy
  }

  @Test func `the views and the guide's code fit the models and the library`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-views-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await makeFrameworks(in: folder)
    let keychain = Program.checkout.appending(path: "Tests/AppleStubs/KeychainTokenStore.swift")
    let models = try files(in: "Examples/PlansApp/Models")
    let views = try files(in: "Examples/PlansApp/App")
    #expect(models.count > 10 && views.count > 10)
    // The macro for previews is Xcode's.
    let checked = try views.map { view in
      try copy(view, to: folder) { $0.replacing(/(?m)^ *#Preview\(.*$/, with: "") }
    }
    let typecheck = ["-typecheck", "-D", "DEBUG", "-I", folder.path, "-module-name"]
    let errors = try await compile(typecheck + ["PlansApp"], models + checked + [keychain])
    #expect(errors == nil, "\(errors ?? "")")

    let snippets = Program.checkout.appending(path: "Tests/MusterKitTests/Documentation/AppleSnippets.swift")
    let snippetErrors = try await compile(typecheck + ["Guide"], [snippets, keychain])
    #expect(snippetErrors == nil, "\(snippetErrors ?? "")")

    // The check can fail, in code behind a condition.
    let broken = try copy(snippets, to: folder) { $0.replacing("deliver(shown)", with: "deliver(hidden)") }
    let brokenErrors = try await compile(typecheck + ["Guide"], [broken, keychain])
    #expect(brokenErrors?.contains("hidden") == true)
  }
}
