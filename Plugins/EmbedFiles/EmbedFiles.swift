import Foundation
import PackagePlugin

/// Compiles `Migrations/`, `Seeds/` with its pictures, the OpenAPI document and its page, and the common passwords into
/// the program, so that an installed binary needs no checkout.
@main
struct EmbedFiles: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let root = context.package.directoryURL
    let folders = ["Migrations", "Seeds", "Seeds/pictures"].map { root.appending(path: $0) }
    let documents = [
      "HTTP/openapi.yaml", "Authentication/Passwords/common-passwords.txt", "Web/style.css", "Web/share.mustache",
      "Web/share-style.css",
    ].map { root.appending(path: "Sources/App/\($0)") }
    let files = try folders.flatMap {
      try FileManager.default.contentsOfDirectory(
        at: $0, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
    }.filter { !$0.pathExtension.isEmpty }
    let output = context.pluginWorkDirectoryURL.appending(path: "Embedded.swift")
    let page = ["HTTP/openapi.yaml", "Web/docs.mustache", "Web/style.css"].map {
      root.appending(path: "Sources/App/\($0)")
    }
    let rendered = context.pluginWorkDirectoryURL.appending(path: "Embedded+Document.swift")
    var commands: [Command] = [
      .buildCommand(
        displayName: "Embedding migrations, seeds and documents",
        executable: try context.tool(named: "embed-files").url,
        arguments: [output.path] + (folders + documents).map(\.path),
        inputFiles: files + documents, outputFiles: [output])
    ]
    // An app that adds the package builds without the trait Server. It has no such tool, and needs none.
    if let renderer = try? context.tool(named: "render-docs") {
      commands.append(
        .buildCommand(
          displayName: "Rendering the OpenAPI document",
          executable: renderer.url,
          arguments: [rendered.path] + page.map(\.path),
          inputFiles: page, outputFiles: [rendered]))
    }
    return commands
  }
}
