// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Makes several calls in one transaction, like a smart-contract wallet. It must hold what the calls spend.
contract PaymentBatch {
    struct Call {
        address target;
        uint256 value;
        bytes data;
    }

    function run(Call[] calldata calls) public payable virtual {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory answer) = calls[i].target.call{value: calls[i].value}(calls[i].data);
            if (!ok) assembly { revert(add(answer, 32), mload(answer)) }
        }
    }

    receive() external payable {}
}
