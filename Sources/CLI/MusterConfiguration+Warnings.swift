import App
import Foundation
import Logging

extension MusterConfiguration {
  /// Reads the configuration, after which the secrets are no longer in this process's environment. Logs a warning about
  /// unknown names, which are usually misspelled.
  ///
  /// - Parameters:
  ///   - environment: the variables, if they were read before.
  ///   - overrides: values that take precedence over all others.
  ///   - fallbacks: values for variables that have none otherwise.
  static func loadWithWarnings(
    for program: Program, environment: [String: String] = ProcessInfo.processInfo.environment,
    overrides: [String: String] = [:], fallbacks: [String: String] = [:]
  ) async throws -> MusterConfiguration {
    Containment.forgetSecrets()
    let configuration = try await load(
      for: program, environment: environment, overrides: overrides, fallbacks: fallbacks)
    if !configuration.unknownVariables.isEmpty {
      makeLogger().warning(
        "unknown environment variables are ignored: `muster --help` lists all",
        metadata: ["variables": .array(configuration.unknownVariables.map { .string($0) })])
    }
    return configuration
  }
}
