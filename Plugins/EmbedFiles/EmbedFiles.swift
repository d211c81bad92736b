import Foundation
import PackagePlugin

/// Compiles `Migrations/`, `Seeds/` and the OpenAPI document into the program, so that an installed binary needs no
/// checkout.
@main
struct EmbedFiles: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let root = context.package.directoryURL
    let folders = ["Migrations", "Seeds"].map { root.appending(path: $0) }
    let document = root.appending(path: "Sources/App/HTTP/openapi.yaml")
    let files = try folders.flatMap {
      try FileManager.default.contentsOfDirectory(
        at: $0, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
    }
    let output = context.pluginWorkDirectoryURL.appending(path: "Embedded.swift")
    return [
      .buildCommand(
        displayName: "Embedding migrations, seeds and the OpenAPI document",
        executable: try context.tool(named: "embed-files").url,
        arguments: [output.path] + (folders + [document]).map(\.path),
        inputFiles: files + [document], outputFiles: [output])
    ]
  }
}
