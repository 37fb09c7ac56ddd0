set -e
mvn --quiet --batch-mode compile exec:java
mvn --quiet --batch-mode exec:java -Dexec.mainClass=example.ShopTest
