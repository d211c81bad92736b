import App
import Logging

extension MusterConfiguration {
  /// Reads the configuration. Logs a warning about unknown names, which are usually misspelled.
  ///
  /// - Parameters:
  ///   - overrides: values that take precedence over all others.
  ///   - fallbacks: values for variables that have none otherwise.
  static func loadWithWarnings(
    for program: Program, overrides: [String: String] = [:], fallbacks: [String: String] = [:]
  ) async throws -> MusterConfiguration {
    let configuration = try await load(for: program, overrides: overrides, fallbacks: fallbacks)
    if !configuration.unknownVariables.isEmpty {
      makeLogger().warning(
        "unknown environment variables are ignored: `muster --help` lists all",
        metadata: ["variables": .array(configuration.unknownVariables.map { .string($0) })])
    }
    return configuration
  }
}
