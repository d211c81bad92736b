import Foundation
import HTML
import Mustache

/// `render-docs OUTPUT DOCUMENT TEMPLATE STYLE`: writes a Swift file with the OpenAPI document as JSON, and as the page
/// at `/docs`. On the page, `https://muster.invalid` stands for the service's URL.
@main enum RenderDocs {
  private static let baseURL = "https://muster.invalid"

  static func main() throws {
    let paths = CommandLine.arguments
    guard paths.count == 5 else { fatalError("usage: render-docs OUTPUT DOCUMENT TEMPLATE STYLE") }
    let texts = try paths[2...].map { try String(contentsOfFile: $0, encoding: .utf8) }
    let document = try OpenAPIDocument(yaml: texts[0])
    let reference = ReferenceReader(document, baseURL: baseURL).reference()
    let page: [String: Any] = ["reference": reference, "style": texts[2], "base": baseURL]
    let html = try MustacheTemplate.html(texts[1]).render(page)
    let swift = """
      extension Embedded {
        static let openAPIJSON = ####\"""
      \(document.root.line)
      \"""####
        static let docsPage = ####\"""
      \(html)
      \"""####
      }

      """
    try swift.write(toFile: paths[1], atomically: true, encoding: .utf8)
  }
}
